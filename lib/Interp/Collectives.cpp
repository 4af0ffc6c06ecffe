//===- Collectives.cpp - kernels of the dialect par -------------------------------------------===//

#include "dialects/Par/Placement.h"
#include "lib/Interp/Execution.h"
#include "lib/Interp/OneBit.h"
#include "runtime/include/partita_rt/shards.h"

using namespace mlir;
using namespace partita;
using namespace partita::interp;

using RankInputs = ArrayRef<RankTensors>;
using RankOutputs = MutableArrayRef<RankTensors>;

static LogicalResult f(Execution &, par::FOp, RankInputs in, RankOutputs out) {
  out[0] = in[0];
  return success();
}

static LogicalResult g(Execution &execution, par::GOp op, RankInputs in, RankOutputs out) {
  out[0] = sumOverGroups(execution.mesh(), op.getAxis(), in[0]);
  return success();
}

static LogicalResult max(Execution &execution, par::MaxOp op, RankInputs in, RankOutputs out) {
  out[0] = maxOverGroups(execution.mesh(), op.getAxis(), in[0]);
  return success();
}

static LogicalResult allReduceMax(Execution &execution, par::AllReduceMaxOp op, RankInputs in,
                                  RankOutputs out) {
  out[0] = maxOverGroups(execution.mesh(), op.getAxis(), in[0]);
  return success();
}

static LogicalResult firstIndex(Execution &execution, par::FirstIndexOp op, RankInputs,
                                RankOutputs out) {
  // The full value: where each shard begins, or that of the rank so many places before.
  par::Layout layout = par::Layout::of(op.getType());
  Tensor full(layout.shape, /*isReal=*/false);
  int64_t shard = partita_rt::shardSize(int64_t(op.getSize()), full.size());
  int64_t behind = op.getBehind();
  const par::Blocks &blocks = layout.splits[0].front().blocks;
  int64_t ranks = full.size() / blocks.count;
  for (int64_t i = 0; i < full.size(); ++i) {
    int64_t block = i / ranks, rank = blocks.placeIn(block, i % ranks, ranks);
    int64_t place = blocks.placeIn(block, (rank + ranks - behind) % ranks, ranks);
    full.setNumber(i, (block * ranks + place) * shard);
  }
  auto shards = cut(full, op.getType(), execution.mesh(), 0,
                    [&](const Twine &error) { op.emitError() << error; });
  if (failed(shards))
    return failure();
  out[0] = std::move(*shards);
  return success();
}

/// Of the start what its wait yields.
template <typename Op>
static LogicalResult allReduce(Execution &execution, Op op, RankInputs in, RankOutputs out) {
  for (auto [result, value] : llvm::zip(out, in))
    result = sumOverGroups(execution.mesh(), op.getAxis(), value);
  return success();
}

static LogicalResult firstElement(Execution &execution, par::FirstElementOp op, RankInputs,
                                  RankOutputs out) {
  for (int64_t rank = 0; rank < execution.rankCount(); ++rank) {
    Tensor index(cast<RankedTensorType>(op.getType()));
    for (auto [axis, stride] : op.strides())
      index.ints[0] += execution.mesh().coordinate(rank, axis) * stride;
    out[0].push_back(std::make_shared<Tensor>(std::move(index)));
  }
  return success();
}

/// Calls visit(element of the full value, element of the shard) for the shard of the rank at
/// `position` in the group.
template <typename Op, typename Visit>
static void forShard(Execution &execution, Op op, int64_t position, Visit visit) {
  auto [blocks, count] = op.getInterleaving();
  auto reshard = dyn_cast<par::ReshardInterface>(op.getOperation());
  par::Blocks placed = reshard ? reshard.getShardBlocks() : par::Blocks();
  int64_t ranks = execution.mesh().sizeOf(op.getAxis());
  for (int64_t block = 0; block < blocks; ++block)
    for (int64_t i = 0; i < count; ++i)
      visit((block * ranks + placed.placeIn(block, position, ranks)) * count + i,
            block * count + i);
}

/// Into the last result: a start's first one is its token.
template <typename Op>
static LogicalResult allGather(Execution &execution, Op op, RankInputs in, RankOutputs out) {
  RankTensors &results = out[op->getNumResults() - 1];
  results.resize(in[0].size());
  for (int64_t rank = 0; rank < execution.rankCount(); ++rank) {
    SmallVector<int64_t> group = execution.mesh().group(rank, op.getAxis());
    if (group.front() != rank) {
      results[rank] = results[group.front()];
      continue;
    }
    Tensor full(op.getFullType());
    for (auto [position, member] : llvm::enumerate(group)) {
      const Tensor &shard = *in[0][member];
      forShard(execution, op, position,
               [&](int64_t to, int64_t from) { full.copyElement(to, shard, from); });
    }
    results[rank] = std::make_shared<Tensor>(std::move(full));
  }
  return success();
}

/// Each rank's shard of what it holds in full.
template <typename Op>
static void takeShards(Execution &execution, Op op, const RankTensors &fullTensors,
                       RankTensors &shards) {
  for (int64_t rank = 0; rank < execution.rankCount(); ++rank) {
    Tensor shard(op.getShardType());
    forShard(execution, op, execution.mesh().coordinate(rank, op.getAxis()),
             [&](int64_t from, int64_t to) { shard.copyElement(to, *fullTensors[rank], from); });
    shards.push_back(std::make_shared<Tensor>(std::move(shard)));
  }
}

template <typename Op>
static LogicalResult reduceScatter(Execution &execution, Op op, RankInputs in, RankOutputs out) {
  takeShards(execution, op, sumOverGroups(execution.mesh(), op.getAxis(), in[0]),
             out[op->getNumResults() - 1]);
  return success();
}

static LogicalResult narrow(Execution &execution, par::NarrowOp op, RankInputs in,
                            RankOutputs out) {
  takeShards(execution, op, in[0], out[0]);
  return success();
}

static LogicalResult widen(Execution &execution, par::WidenOp op, RankInputs in, RankOutputs out) {
  for (int64_t rank = 0; rank < execution.rankCount(); ++rank) {
    Tensor full(op.getFullType());
    forShard(execution, op, execution.mesh().coordinate(rank, op.getAxis()),
             [&](int64_t to, int64_t from) { full.copyElement(to, *in[0][rank], from); });
    out[0].push_back(std::make_shared<Tensor>(std::move(full)));
  }
  return success();
}

/// Into the last results: a start's first one is its token.
template <typename Op>
static LogicalResult shift(Execution &execution, Op op, RankInputs in, RankOutputs out) {
  unsigned first = op->getNumResults() - op->getNumOperands();
  for (int64_t rank = 0; rank < execution.rankCount(); ++rank) {
    SmallVector<int64_t> group = execution.mesh().group(rank, op.getAxis());
    int64_t source = group[partita_rt::shiftSource(execution.mesh().coordinate(rank, op.getAxis()),
                                                   int64_t(group.size()), op.getBack())];
    for (auto [i, values] : llvm::enumerate(in))
      out[first + i].push_back(values[source]);
  }
  return success();
}

/// Element by element: which rank has it, and where.
static LogicalResult allToAll(Execution &execution, par::AllToAllOp op, RankInputs in,
                              RankOutputs out) {
  auto from = static_cast<int64_t>(op.getFrom()), to = static_cast<int64_t>(op.getTo());
  for (int64_t rank = 0; rank < execution.rankCount(); ++rank) {
    SmallVector<int64_t> group = execution.mesh().group(rank, op.getAxis());
    int64_t own = execution.mesh().coordinate(rank, op.getAxis());
    Tensor result(cast<RankedTensorType>(op.getType()));
    ArrayRef<int64_t> source = in[0][rank]->shape;
    SmallVector<int64_t> index(result.shape.size());
    for (int64_t i = 0; i < result.size(); ++i) {
      int64_t rest = i;
      for (int64_t dim = int64_t(index.size()) - 1; dim >= 0; --dim) {
        index[dim] = rest % result.shape[dim];
        rest /= result.shape[dim];
      }
      // Of each run of a sequence the ranks have pieces, in order; of heads there is one run on a rank.
      auto runs = [&](int64_t dim) { return dim < std::max(from, to) ? int64_t(op.getRuns()) : 1; };
      int64_t piece = source[from] / runs(from),
              run = index[from] / (piece * int64_t(group.size()));
      int64_t owner = index[from] / piece % int64_t(group.size());
      index[from] = run * piece + index[from] % piece;
      int64_t kept = result.shape[to] / runs(to);
      index[to] = (index[to] / kept * int64_t(group.size()) + own) * kept + index[to] % kept;
      int64_t at = 0;
      for (auto [number, size] : llvm::zip(index, source))
        at = at * size + number;
      result.copyElement(i, *in[0][group[owner]], at);
    }
    out[0].push_back(std::make_shared<Tensor>(std::move(result)));
  }
  return success();
}

/// Changes no value.
static LogicalResult poll(Execution &, par::PollOp, RankInputs, RankOutputs) { return success(); }

void partita::interp::addParKernels(KernelTable &table) {
  table.addRanks<par::FOp>(f);
  table.addRanks<par::GOp>(g);
  table.addRanks<par::MaxOp>(max);
  table.addRanks<par::FirstIndexOp>(firstIndex);
  table.addRanks<par::AllReduceOp>(allReduce<par::AllReduceOp>);
  table.addRanks<par::AllReduceMaxOp>(allReduceMax);
  table.addRanks<par::AllGatherOp>(allGather<par::AllGatherOp>);
  table.addRanks<par::AllGatherStartOp>(allGather<par::AllGatherStartOp>);
  table.addRanks<par::ReduceScatterOp>(reduceScatter<par::ReduceScatterOp>);
  table.addRanks<par::ReduceScatterStartOp>(reduceScatter<par::ReduceScatterStartOp>);
  table.addRanks<par::NarrowOp>(narrow);
  table.addRanks<par::WidenOp>(widen);
  table.addRanks<par::AllToAllOp>(allToAll);
  table.addRanks<par::ShiftOp>(shift<par::ShiftOp>);
  table.addRanks<par::ShiftStartOp>(shift<par::ShiftStartOp>);
  table.addRanks<par::FirstElementOp>(firstElement);
  table.addInPlaceStart<par::AllReduceStartOp>(allReduce<par::AllReduceStartOp>);
  table.addRanks<par::PollOp>(poll);
  addOneBitKernels(table);
  table.addRanks<par::WaitOp>(complete);
}
