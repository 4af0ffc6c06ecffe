//===- ParChunks.cpp - chunks of what a rank holds --------------------------------------------===//

#include "dialects/Par/Par.h"
#include "dialects/Par/Placement.h"

using namespace mlir;
using namespace partita;
using namespace partita::par;

RankedTensorType ChunkOp::typeOf(RankedTensorType full, int64_t count, int64_t dim, MeshAttr mesh) {
  if (count < 1 || dim < 0 || dim >= full.getRank() || full.getDimSize(dim) % count != 0 ||
      full.getDimSize(dim) == 0)
    return {};
  SmallVector<int64_t> shape(full.getShape());
  shape[dim] /= count;
  if (!full.getEncoding())
    return RankedTensorType::get(shape, full.getElementType());
  Layout layout = Layout::of(full);
  // Flat shards have no rows. An uneven shard ends in padding, which only the last chunk would have.
  if (!layout.flat.empty() || layout.shape[dim] % count != 0)
    return {};
  layout.shape[dim] /= count;
  int64_t ranks = 1; // over which axes outside of the blocks split the dimension
  for (AxisSplit &split : layout.splits[dim]) {
    if (split.blocks != Blocks(1)) {
      if (!split.blocks.sizes.empty() || split.blocks.count % (ranks * count) != 0)
        return {};
      split.blocks.count /= count;
    }
    ranks *= mesh ? mesh.sizeOf(split.axis.getValue()) : 1;
  }
  return RankedTensorType::get(shape, full.getElementType(), layout.encoding(full.getContext()));
}

SmallVector<int64_t> ChunkOp::getOffsets() {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(getType()).getShape();
  SmallVector<int64_t> offsets(shape.size(), 0);
  offsets[getDim()] = static_cast<int64_t>(getIndex()) * shape[getDim()];
  return offsets;
}

/// Checks the type of one chunk.
static LogicalResult verifyChunk(Operation *op, RankedTensorType full, Type chunk, int64_t count,
                                 int64_t dim) {
  RankedTensorType expected = ChunkOp::typeOf(full, count, dim, MeshAttr::of(op));
  if (!expected)
    return op->emitOpError() << "along dimension " << dim << " of " << full << ", which has no "
                             << count << " equal chunks there";
  if (chunk != expected)
    return op->emitOpError() << "has a chunk of type " << chunk << ", expected " << expected;
  return success();
}

LogicalResult ChunkOp::verify() {
  auto index = static_cast<int64_t>(getIndex()), count = static_cast<int64_t>(getCount());
  if (index < 0 || index >= count)
    return emitOpError() << "takes chunk " << index << " of " << count
                         << ", which are numbered from 0";
  return verifyChunk(*this, cast<RankedTensorType>(getValue().getType()), getType(), count,
                     static_cast<int64_t>(getDim()));
}

LogicalResult JoinOp::verify() {
  if (getChunks().empty())
    return emitOpError() << "joins no chunks";
  for (Value chunk : getChunks())
    if (failed(verifyChunk(*this, cast<RankedTensorType>(getType()), chunk.getType(),
                           static_cast<int64_t>(getChunks().size()),
                           static_cast<int64_t>(getDim()))))
      return failure();
  return success();
}
