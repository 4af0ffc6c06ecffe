//===- Shards.cpp - kernels of the dialect zero -----------------------------------------------===//
//
// `cut` makes flat shards of a full value, `assemble` the full value of its shards, within each
// group of ranks: only positions are worked out here.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Zero/Zero.h"
#include "lib/Interp/Blockwise.h"
#include "lib/Interp/Chunks.h"
#include "lib/Interp/Execution.h"

using namespace mlir;
using namespace partita;
using namespace partita::interp;

using RankInputs = ArrayRef<RankTensors>;
using RankOutputs = MutableArrayRef<RankTensors>;

/// Each rank's flat shard of what it holds in full.
static RankTensors shardsOf(Execution &execution, StringRef axis, const RankTensors &fullTensors,
                            RankedTensorType type) {
  RankTensors shards;
  for (int64_t rank = 0; rank < execution.rankCount(); ++rank) {
    Tensor shard(type);
    int64_t first = execution.mesh().coordinate(rank, axis) * shard.size();
    for (int64_t i = 0; i < std::min(shard.size(), fullTensors[rank]->size() - first); ++i)
      shard.copyElement(i, *fullTensors[rank], first + i);
    shards.push_back(std::make_shared<Tensor>(std::move(shard)));
  }
  return shards;
}

/// What each group's shards make up; its ranks share it.
static RankTensors fullTensorsOf(Execution &execution, StringRef axis, const RankTensors &shards,
                                 RankedTensorType type) {
  RankTensors fullTensors(shards.size());
  for (int64_t rank = 0; rank < execution.rankCount(); ++rank) {
    SmallVector<int64_t> group = execution.mesh().group(rank, axis);
    if (group.front() != rank) {
      fullTensors[rank] = fullTensors[group.front()];
      continue;
    }
    Tensor full(type);
    for (int64_t i = 0, count = shards[rank]->size(); i < full.size(); ++i)
      full.copyElement(i, *shards[group[i / count]], i % count);
    fullTensors[rank] = std::make_shared<Tensor>(std::move(full));
  }
  return fullTensors;
}

static LogicalResult shard(Execution &execution, zero::ShardOp op, RankInputs in, RankOutputs out) {
  out[0] = shardsOf(execution, op.getAxis(), in[0], cast<RankedTensorType>(op.getType()));
  return success();
}

/// Into the results from number `first` on.
template <typename Op>
static LogicalResult gather(Execution &execution, Op op, RankInputs in, RankOutputs out) {
  unsigned first = op->getNumResults() - op->getNumOperands(); // a start has a token
  for (auto [i, shards] : llvm::enumerate(in))
    out[first + i] = fullTensorsOf(execution, op.getAxis(), shards,
                                   cast<RankedTensorType>(op->getResult(first + i).getType()));
  if constexpr (std::is_same_v<Op, zero::GatherOp>)
    if (op.getInt8Block())
      for (RankTensors &full : out)
        full = roundedInBlocks(full, static_cast<int64_t>(*op.getInt8Block()));
  return success();
}

template <typename Op>
static LogicalResult scatter(Execution &execution, Op op, RankInputs in, RankOutputs out) {
  unsigned first = op->getNumResults() - op->getNumOperands();
  if constexpr (std::is_same_v<Op, zero::ReduceScatterOp>)
    if (op.getInt4Block()) {
      for (auto [i, values] : llvm::enumerate(in))
        out[i] = scatteredInBlocks(execution, op.getAxis(), values,
                                   cast<RankedTensorType>(op->getResult(i).getType()),
                                   static_cast<int64_t>(*op.getInt4Block()));
      return success();
    }
  for (auto [i, values] : llvm::enumerate(in))
    out[first + i] =
        shardsOf(execution, op.getAxis(), sumOverGroups(execution.mesh(), op.getAxis(), values),
                 cast<RankedTensorType>(op->getResult(first + i).getType()));
  return success();
}

void partita::interp::addZeroKernels(KernelTable &table) {
  table.addRanks<zero::ShardOp>(shard);
  table.addRanks<zero::GatherOp>(gather<zero::GatherOp>);
  table.addRanks<zero::GatherStartOp>(gather<zero::GatherStartOp>);
  table.addRanks<zero::ReduceScatterOp>(scatter<zero::ReduceScatterOp>);
  table.addRanks<zero::ReduceScatterStartOp>(scatter<zero::ReduceScatterStartOp>);
}
