//===- Zero.cpp - flat shards: taken, gathered, reduced ---------------------------------------===//
//
// One call of the runtime each, for a bucket; nothing is copied together: the runtime takes lists.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Zero/Zero.h"
#include "dialects/Rt/Names.h"
#include "partita/Analysis/Collectives.h"
#include "partita/Lower/Lowering.h"
#include "runtime/include/partita_rt/int4_chunks.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

namespace {

/// What a call moves, pair by pair: from operand number i to result number i, or to the one after
/// it where the first result is a token.
struct Transfers {
  SmallVector<Value> from, to;
  SmallVector<int64_t> blocks, counts, fullSizes;

  LogicalResult add(Lowering &l, Value source, Value target, int64_t ranks) {
    Type element = l.type(source).getElementType();
    if (!isa<FloatType>(element) && !element.isInteger(8))
      return l.op->emitOpError() << "moves floats and bytes on this target, not " << element;
    int64_t shard = std::min(l.elements(source), l.elements(target)),
            full = std::max(l.elements(source), l.elements(target));
    from.push_back(l.buffer(source));
    to.push_back(l.buffer(target));
    blocks.push_back(1);
    counts.push_back(shard);
    fullSizes.push_back(shard * ranks == full ? 0 : full);
    return success();
  }
};

template <typename Call, typename Op> LogicalResult lowerBucket(Op op, Lowering &l) {
  if constexpr (std::is_same_v<Op, zero::ReduceScatterOp>)
    if (op.getInt4Block())
      return op.emitOpError() << "sums blocks of 4 bits, which no exchange of them stands for; run "
                                 "zero-quantize-scatters first";
  FailureOr<std::string> communicator = rt::communicatorOf(op);
  if (failed(communicator))
    return failure();
  Transfers transfers;
  unsigned token = op->getNumResults() - op->getNumOperands();
  for (auto [source, target] : llvm::zip(op->getOperands(), op->getResults().drop_front(token)))
    if (failed(transfers.add(l, source, target, op.getRankCount())))
      return failure();
  l.create<Call>(transfers.from, transfers.to, transfers.blocks, transfers.counts,
                 transfers.fullSizes, *communicator, analysis::nameOf(op), l.pendingOf(op));
  return success();
}

struct Shard : KernelInterface::ExternalModel<Shard, zero::ShardOp> {
  StringRef resultName(Operation *, unsigned) const { return "shard"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto shard = cast<zero::ShardOp>(op);
    int64_t ranks = par::ranksOver(op, shard.getAxisAttr());
    Transfers transfers;
    if (failed(axisOf(op, shard.getAxis())) ||
        failed(transfers.add(l, shard.getValue(), shard.getResult(), ranks)))
      return failure();
    l.create<TakePartOp>(transfers.from[0], transfers.to[0], transfers.blocks[0],
                         transfers.counts[0], transfers.fullSizes[0], shard.getAxis(), ranks,
                         /*mirrored=*/false);
    return success();
  }
};

/// From memory to other memory: nothing of an operand is overwritten.
template <typename Op, typename Call>
struct Bucket : KernelInterface::ExternalModel<Bucket<Op, Call>, Op> {
  StringRef resultName(Operation *, unsigned) const {
    return partita_rt::rowOf(Op::kKind).to == partita_rt::Extent::Full ? "full" : "shard";
  }
  LogicalResult lower(Operation *op, Lowering &l) const {
    return lowerBucket<Call>(cast<Op>(op), l);
  }
};

struct QuantizeBlocks : KernelInterface::ExternalModel<QuantizeBlocks, zero::QuantizeBlocksOp> {
  StringRef resultName(Operation *, unsigned result) const {
    return result == 0 ? "quantized" : "scales";
  }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto quantize = cast<zero::QuantizeBlocksOp>(op);
    l.create<rt::QuantizeBlocksOp>(l.buffer(quantize.getValues()), l.buffer(quantize.getScales()),
                                   l.buffer(quantize.getX()), quantize.getBlock(),
                                   l.elements(quantize.getX()));
    return success();
  }
};

struct DequantizeBlocks
    : KernelInterface::ExternalModel<DequantizeBlocks, zero::DequantizeBlocksOp> {
  StringRef resultName(Operation *, unsigned) const { return "full"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto dequantize = cast<zero::DequantizeBlocksOp>(op);
    l.create<rt::DequantizeBlocksOp>(l.buffer(dequantize.getX()), l.buffer(dequantize.getValues()),
                                     l.buffer(dequantize.getScales()), dequantize.getBlock(),
                                     l.elements(dequantize.getX()));
    return success();
  }
};

struct RoundBlocks : KernelInterface::ExternalModel<RoundBlocks, zero::RoundBlocksOp> {
  StringRef resultName(Operation *, unsigned) const { return "rounded"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto round = cast<zero::RoundBlocksOp>(op);
    l.create<rt::RoundBlocksOp>(l.buffer(round.getResult()), l.buffer(round.getX()),
                                round.getBlock(), l.elements(round.getX()));
    return success();
  }
};

/// Where each tensor of a bucket lies in a rank's chunks.
struct QuantizeChunks : KernelInterface::ExternalModel<QuantizeChunks, zero::QuantizeChunksOp> {
  StringRef resultName(Operation *, unsigned) const { return "chunks"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto quantize = cast<zero::QuantizeChunksOp>(op);
    auto block = static_cast<int64_t>(quantize.getBlock());
    int64_t ranks = par::ranksOver(op, quantize.getAxisAttr()), offset = 0,
            stride = l.elements(quantize.getChunks()) / ranks;
    for (Value value : quantize.getValues()) {
      int64_t chunk =
          zero::shardType(value.getType(), quantize.getAxisAttr(), par::MeshAttr::of(op))
              .getNumElements();
      l.create<rt::QuantizeChunksOp>(l.buffer(quantize.getChunks()), l.buffer(value), offset,
                                     stride, l.elements(value), chunk, ranks, block);
      offset += partita_rt::int4_chunks::chunkBytes(chunk, block);
    }
    return success();
  }
};

struct SumChunks : KernelInterface::ExternalModel<SumChunks, zero::SumChunksOp> {
  StringRef resultName(Operation *, unsigned) const { return "shard"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto sum = cast<zero::SumChunksOp>(op);
    auto block = static_cast<int64_t>(sum.getBlock());
    int64_t ranks = par::ranksOver(op, sum.getAxisAttr()), offset = 0,
            stride = l.elements(sum.getReceived()) / ranks;
    for (Value shard : sum.getShards()) {
      l.create<rt::SumChunksOp>(l.buffer(shard), l.buffer(sum.getReceived()), offset, stride,
                                l.elements(shard), ranks, block);
      offset += partita_rt::int4_chunks::chunkBytes(l.elements(shard), block);
    }
    return success();
  }
};

/// A row of bytes from each rank to each.
template <typename Op>
struct ExchangeChunks : KernelInterface::ExternalModel<ExchangeChunks<Op>, Op> {
  StringRef resultName(Operation *, unsigned) const { return "received"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    FailureOr<std::string> communicator = rt::communicatorOf(op);
    if (failed(communicator))
      return failure();
    Value received = op->getResult(op->getNumResults() - 1);
    int64_t row = l.elements(received) / cast<CollectiveInterface>(op).getRankCount();
    l.create<rt::AllToAllOp>(ValueRange(l.operand(0)), ValueRange(l.buffer(received)),
                             ArrayRef<int64_t>(1), ArrayRef(row), ArrayRef<int64_t>(0),
                             *communicator, analysis::nameOf(op),
                             isa<AsyncStartInterface>(op) ? l.pendingOf(op) : "");
    return success();
  }
};

} // namespace

void rt::attachShards(MLIRContext *context) {
  using namespace zero;
  zero::ShardOp::attachInterface<Shard>(*context);
  zero::QuantizeBlocksOp::attachInterface<QuantizeBlocks>(*context);
  zero::DequantizeBlocksOp::attachInterface<DequantizeBlocks>(*context);
  zero::RoundBlocksOp::attachInterface<RoundBlocks>(*context);
  zero::QuantizeChunksOp::attachInterface<QuantizeChunks>(*context);
  zero::SumChunksOp::attachInterface<SumChunks>(*context);
  ExchangeChunksOp::attachInterface<ExchangeChunks<ExchangeChunksOp>>(*context);
  ExchangeChunksStartOp::attachInterface<ExchangeChunks<ExchangeChunksStartOp>>(*context);
  GatherOp::attachInterface<Bucket<GatherOp, rt::AllGatherOp>>(*context);
  GatherStartOp::attachInterface<Bucket<GatherStartOp, rt::AllGatherOp>>(*context);
  zero::ReduceScatterOp::attachInterface<Bucket<zero::ReduceScatterOp, rt::ReduceScatterOp>>(
      *context);
  ReduceScatterStartOp::attachInterface<Bucket<ReduceScatterStartOp, rt::ReduceScatterOp>>(
      *context);
}
