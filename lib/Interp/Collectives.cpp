//===- Collectives.cpp - kernels of the dialect par -------------------------------------------===//

#include "Execution.h"

using namespace mlir;
using namespace partita;
using namespace partita::interp;

using RankInputs = ArrayRef<RankTensors>;
using RankOutputs = MutableArrayRef<RankTensors>;

/// The sums over each group of ranks that differ along `axis`, added in the order of the axis; the
/// group shares the result.
static RankTensors sumOverGroups(par::MeshAttr mesh, StringRef axis, const RankTensors &values) {
  RankTensors sums(values.size());
  for (size_t rank = 0; rank < values.size(); ++rank) {
    SmallVector<int64_t> group = mesh.group(rank, axis);
    if (group.front() != static_cast<int64_t>(rank)) {
      sums[rank] = sums[group.front()];
      continue;
    }
    Tensor sum = *values[rank];
    for (int64_t other : ArrayRef(group).drop_front())
      sum.add(*values[other]);
    sums[rank] = std::make_shared<Tensor>(std::move(sum));
  }
  return sums;
}

static LogicalResult f(Execution &, par::FOp, RankInputs in, RankOutputs out) {
  out[0] = in[0];
  return success();
}

static LogicalResult g(Execution &execution, par::GOp op, RankInputs in, RankOutputs out) {
  out[0] = sumOverGroups(execution.mesh(), op.getAxis(), in[0]);
  return success();
}

static LogicalResult allReduce(Execution &execution, par::AllReduceOp op, RankInputs in,
                               RankOutputs out) {
  for (auto [result, value] : llvm::zip(out, in))
    result = sumOverGroups(execution.mesh(), op.getAxis(), value);
  return success();
}

/// The sum happens at the wait; the token is no tensor.
static LogicalResult start(Execution &, par::AllReduceStartOp, RankInputs, RankOutputs) {
  return success();
}

static LogicalResult wait(Execution &execution, par::WaitOp op, RankInputs in, RankOutputs out) {
  auto started = op.getToken().getDefiningOp<par::AllReduceStartOp>();
  if (!started)
    return op.emitError() << "waits for what no collective of its block started";
  for (auto [result, value] : llvm::zip(out, in.drop_front()))
    result = sumOverGroups(execution.mesh(), started.getAxis(), value);
  return success();
}

void partita::interp::addParKernels(KernelTable &table) {
  table.addRanks<par::FOp>(f);
  table.addRanks<par::GOp>(g);
  table.addRanks<par::AllReduceOp>(allReduce);
  table.addRanks<par::AllReduceStartOp>(start);
  table.addRanks<par::WaitOp>(wait);
}
