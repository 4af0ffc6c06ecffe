//===- Shards.cpp - kernels of the dialect zero -----------------------------------------------===//
//
// `cut` makes flat shards of a full value, `assemble` the full value of its shards, within each
// group of ranks: only positions are worked out here.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Zero/Zero.h"
#include "lib/Interp/Execution.h"

using namespace mlir;
using namespace partita;
using namespace partita::interp;

using RankInputs = ArrayRef<RankTensors>;
using RankOutputs = MutableArrayRef<RankTensors>;

/// Each rank's flat shard of what it holds in full.
static RankTensors piecesOf(Execution &execution, StringRef axis, const RankTensors &wholes,
                            RankedTensorType type) {
  RankTensors pieces;
  for (int64_t rank = 0; rank < execution.rankCount(); ++rank) {
    Tensor piece(type);
    int64_t first = execution.mesh().coordinate(rank, axis) * piece.size();
    for (int64_t i = 0; i < std::min(piece.size(), wholes[rank]->size() - first); ++i)
      piece.copyElement(i, *wholes[rank], first + i);
    pieces.push_back(std::make_shared<Tensor>(std::move(piece)));
  }
  return pieces;
}

/// What each group's shards make up; its ranks share it.
static RankTensors wholesOf(Execution &execution, StringRef axis, const RankTensors &pieces,
                            RankedTensorType type) {
  RankTensors wholes(pieces.size());
  for (int64_t rank = 0; rank < execution.rankCount(); ++rank) {
    SmallVector<int64_t> group = execution.mesh().group(rank, axis);
    if (group.front() != rank) {
      wholes[rank] = wholes[group.front()];
      continue;
    }
    Tensor whole(type);
    for (int64_t i = 0, count = pieces[rank]->size(); i < whole.size(); ++i)
      whole.copyElement(i, *pieces[group[i / count]], i % count);
    wholes[rank] = std::make_shared<Tensor>(std::move(whole));
  }
  return wholes;
}

static LogicalResult shard(Execution &execution, zero::ShardOp op, RankInputs in, RankOutputs out) {
  out[0] = piecesOf(execution, op.getAxis(), in[0], cast<RankedTensorType>(op.getType()));
  return success();
}

/// Into the results from number `first` on.
template <typename Op>
static LogicalResult gather(Execution &execution, Op op, RankInputs in, RankOutputs out) {
  unsigned first = op->getNumResults() - op->getNumOperands(); // a start has a token
  for (auto [i, pieces] : llvm::enumerate(in))
    out[first + i] = wholesOf(execution, op.getAxis(), pieces,
                              cast<RankedTensorType>(op->getResult(first + i).getType()));
  return success();
}

template <typename Op>
static LogicalResult scatter(Execution &execution, Op op, RankInputs in, RankOutputs out) {
  unsigned first = op->getNumResults() - op->getNumOperands();
  for (auto [i, values] : llvm::enumerate(in))
    out[first + i] =
        piecesOf(execution, op.getAxis(), sumOverGroups(execution.mesh(), op.getAxis(), values),
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
