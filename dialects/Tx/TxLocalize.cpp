//===- TxLocalize.cpp - adapts ops whose types become those of one rank -----------------------===//

#include "dialects/Par/Placement.h"
#include "dialects/Tx/Tx.h"

using namespace mlir;
using namespace partita;
using namespace partita::tx;

//===------------------------------------------------------------------------------------------------===//
// First indices
//===------------------------------------------------------------------------------------------------===//

void tx::addFirstIndex(Operation *op, MutableOperandRange first, Type type, unsigned dim) {
  par::Layout layout = par::Layout::of(type);
  if (layout.splits[dim].empty() || first.size() != 0)
    return;
  int64_t full = layout.shape[dim];
  par::Layout shards(
      static_cast<int64_t>(llvm::divideCeil(full, cast<RankedTensorType>(type).getDimSize(dim))));
  shards.splits[0] = layout.splits[dim];
  OpBuilder builder(op);
  auto index = RankedTensorType::get({1}, builder.getI64Type(), shards.encoding(op->getContext()));
  first.assign(par::FirstIndexOp::create(builder, op->getLoc(), index, full).getResult());
}

void EmbeddingOp::localize() { addFirstIndex(*this, getFirstMutable(), getTable().getType(), 0); }
void EmbeddingGradOp::localize() {
  addFirstIndex(*this, getFirstMutable(), getDtable().getType(), 0);
}
void CrossEntropyGradOp::localize() {
  addFirstIndex(*this, getFirstMutable(), getLogits().getType(),
                getLogits().getType().getRank() - 1);
}
void RepeatOp::localize() { addFirstIndex(*this, getFirstMutable(), getType(), getDim()); }
void RepeatSumOp::localize() {
  addFirstIndex(*this, getFirstMutable(), getX().getType(), getDim());
}
void LogSumExpOp::localize() {
  addFirstIndex(*this, getFirstMutable(), getX().getType(), getX().getType().getRank() - 1);
}
void TokenLossOp::localize() {
  addFirstIndex(*this, getFirstMutable(), getLogits().getType(),
                getLogits().getType().getRank() - 1);
}

//===------------------------------------------------------------------------------------------------===//
// Offsets within a rank's shard
//===------------------------------------------------------------------------------------------------===//

/// Scales offsets: every block shrinks alike, so an offset, a multiple of a block, shrinks with the
/// dimension.
static SmallVector<int64_t> localOffsets(ArrayRef<int64_t> offsets, RankedTensorType cut) {
  par::Layout layout = par::Layout::of(cut);
  SmallVector<int64_t> local(offsets);
  for (auto [offset, full, shard] : llvm::zip(local, layout.shape, cut.getShape()))
    if (full != shard)
      offset = offset * shard / full;
  return local;
}

void SliceOp::localize() { setOffsets(localOffsets(getOffsets(), getX().getType())); }
void PadOp::localize() { setOffsets(localOffsets(getOffsets(), getType())); }

//===------------------------------------------------------------------------------------------------===//
// Values of which a rank takes a shard
//===------------------------------------------------------------------------------------------------===//

/// A splat becomes a smaller splat. Every rank has other values in full, and takes its shard, axis
/// by axis: which one is only known at run time.
void ConstantOp::localize() {
  RankedTensorType shard = getType();
  auto dense = dyn_cast<DenseElementsAttr>(getValue());
  if (dense && dense.isSplat()) {
    auto plain = RankedTensorType::get(shard.getShape(), shard.getElementType());
    return setValueAttr(cast<ElementsAttr>(
        Attribute(DenseElementsAttr::get(plain, dense.getSplatValue<Attribute>()))));
  }
  par::MeshAttr mesh = par::MeshAttr::of(*this);
  par::Layout layout = par::Layout::of(shard), narrowed(layout.shape);
  OpBuilder builder(getContext());
  builder.setInsertionPointAfter(*this);
  Value part = getResult(), full = part;
  Operation *first = nullptr;
  for (auto [dim, axes] : llvm::enumerate(layout.splits))
    for (const par::AxisSplit &split : axes) {
      narrowed.shard(split.axis, dim, split.blocks);
      auto type = narrowed.localType(shard.getElementType(), mesh, [](const Twine &) {});
      auto narrow = par::NarrowOp::create(
          builder, getLoc(), failed(type) ? shard : *type, part, split.axis,
          builder.getI64IntegerAttr(dim), builder.getI64IntegerAttr(split.blocks.count),
          StringAttr(), split.blocks.mirrored ? builder.getUnitAttr() : UnitAttr());
      part = narrow.getResult();
      first = first ? first : narrow;
    }
  if (!first)
    return;
  full.setType(par::fullType(shard));
  full.replaceAllUsesExcept(part, first);
}
