//===- Verify.cpp - the contract of the partition phase ---------------------------------------===//

#include "dialects/Par/Reasons.h"
#include "dialects/Train/Train.h"
#include "lib/Partition/Flow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Partition/Passes.h"

namespace partita {
#define GEN_PASS_DEF_PARTITIONVERIFYPASS
#include "partita/Partition/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

struct PartitionVerify : partita::impl::PartitionVerifyPassBase<PartitionVerify> {
  void runOnOperation() override {
    markAllAnalysesPreserved(); // ops are not verified again, either
    mesh = par::MeshAttr::of(getOperation());
    WalkResult result = getOperation().walk([&](Operation *op) {
      for (Region &region : op->getRegions())
        for (Block &block : region)
          for (BlockArgument argument : block.getArguments())
            if (failed(checkShard(argument)))
              return WalkResult::interrupt();
      for (Value value : op->getResults())
        if (failed(checkShard(value)))
          return WalkResult::interrupt();
      return failed(checkOp(op)) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

private:
  LogicalResult checkShard(Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type || !type.getEncoding())
      return success();
    if (std::string problem = par::shardProblem(type, mesh); !problem.empty())
      return emitError(value.getLoc()) << problem;
    return success();
  }

  LogicalResult checkOp(Operation *op) {
    if (op->hasAttr(kResultSplits))
      return op->emitError() << "still has splits to materialize";
    if (auto move = dyn_cast<par::ReshardInterface>(op))
      if (StringAttr axis = move.getAxisAttr();
          par::Layout::of(op->getOperand(0).getType()).dimOf(axis) < 0 &&
          par::Layout::of(op->getResult(0).getType()).dimOf(axis) < 0)
        return op->emitError() << "'" << op->getName() << "' over " << axis << " is not placed yet";
    if (hasRule(op))
      return checkPadding(op);
    if (!isa<train::MinimizeOp, func::ReturnOp>(op))
      return success();
    if (auto minimize = dyn_cast<train::MinimizeOp>(op))
      if (failed(checkLoss(minimize)))
        return failure();
    for (Value value : op->getOperands())
      if (par::Layout layout = par::Layout::of(value.getType()); !layout.partial.empty()) {
        StringAttr axis = layout.partial.front();
        InFlightDiagnostic error = op->emitError();
        error << (isa<func::ReturnOp>(op) ? "returns" : "minimizes") << " a partial sum over "
              << axis;
        par::attachReasons(error, "it", axis, par::traceReasons(value, axis));
        return error;
      }
    return success();
  }

  /// Checks that the loss is invariant: a replicated value would have a gradient on every rank.
  LogicalResult checkLoss(train::MinimizeOp minimize) {
    Value loss = minimize->getOperand(0);
    par::Layout layout = par::Layout::of(loss.getType());
    if (layout.replicated.empty())
      return success();
    StringAttr axis = layout.replicated.front();
    InFlightDiagnostic error = minimize.emitError()
                               << "minimizes a value that is replicated over " << axis
                               << ": its gradient would count once for every rank";
    par::attachReasons(error, "it", axis, par::traceReasons(loss, axis));
    return error;
  }

  /// Checks that elements past the end of a full value are zero in every shard, or never read.
  LogicalResult checkPadding(Operation *op) {
    SmallVector<par::Layout, 2> operands, results;
    for (Type type : op->getOperandTypes())
      operands.push_back(par::Layout::of(type));
    for (Type type : op->getResultTypes())
      results.push_back(par::Layout::of(type));
    SmallVector<int64_t> sizes;
    std::string error;
    const ShardRule *rule = par::ruleOf(op, error);
    if (rule && par::letterSizes(*rule, op, sizes, error))
      error = par::unevenProblem(op, *rule, sizes, operands, results, mesh);
    if (!error.empty())
      return op->emitError() << "does not keep the padding of a shard zero: " << error;
    return success();
  }

  par::MeshAttr mesh;
};

} // namespace
