//===- Zero.cpp - flat shards: taken, gathered, reduced ---------------------------------------===//
//
// One call of the runtime each, for a bucket; nothing is copied together: the runtime takes lists.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Zero/Zero.h"
#include "dialects/Rt/Names.h"
#include "partita/Analysis/Collectives.h"
#include "partita/Lower/Lowering.h"

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

} // namespace

void rt::attachShards(MLIRContext *context) {
  using namespace zero;
  zero::ShardOp::attachInterface<Shard>(*context);
  zero::QuantizeBlocksOp::attachInterface<QuantizeBlocks>(*context);
  zero::DequantizeBlocksOp::attachInterface<DequantizeBlocks>(*context);
  zero::RoundBlocksOp::attachInterface<RoundBlocks>(*context);
  GatherOp::attachInterface<Bucket<GatherOp, rt::AllGatherOp>>(*context);
  GatherStartOp::attachInterface<Bucket<GatherStartOp, rt::AllGatherOp>>(*context);
  zero::ReduceScatterOp::attachInterface<Bucket<zero::ReduceScatterOp, rt::ReduceScatterOp>>(
      *context);
  ReduceScatterStartOp::attachInterface<Bucket<ReduceScatterStartOp, rt::ReduceScatterOp>>(
      *context);
}
