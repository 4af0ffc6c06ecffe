//===- Stages.cpp - executes a program of pipeline stages; kernels of the dialect pipe ---------===//

#include "partita/Interp/Stages.h"
#include "dialects/Train/Train.h"
#include "lib/Interp/Exchange.h"
#include "lib/Interp/Execution.h"

using namespace mlir;
using namespace partita;
using namespace partita::interp;

static bool isStage(ModuleOp module) { return module->hasAttr(pipe::PipeDialect::kStage); }

bool StageInterpreter::isProgram(ModuleOp module) {
  return llvm::any_of(module.getOps<ModuleOp>(), isStage);
}

FailureOr<StageInterpreter> StageInterpreter::create(ModuleOp program, Options options,
                                                     bool blockingSends) {
  std::map<int64_t, ModuleOp> modules;
  for (auto module : llvm::make_filter_range(program.getOps<ModuleOp>(), isStage)) {
    int64_t number = *pipe::stageOf(module);
    auto [known, isNew] = modules.insert({number, module});
    if (!isNew) {
      InFlightDiagnostic error = module.emitError() << "is a second stage " << number;
      error.attachNote(known->second.getLoc()) << "the first one";
      return failure();
    }
  }
  StageInterpreter result;
  result.blockingSends = blockingSends;
  result.isCut = !modules.empty();
  if (!result.isCut)
    result.stages.emplace_back(program, options);
  for (auto &[number, module] : modules) {
    if (number != static_cast<int64_t>(result.stages.size()))
      return module.emitError() << "is stage " << number << ", and there is no stage "
                                << result.stages.size();
    result.stages.emplace_back(module, options);
    par::MeshAttr mesh = result.stages.back().mesh(), first = result.stages.front().mesh();
    if (mesh != first)
      return module.emitError() << "stage " << number << " has the mesh " << mesh
                                << ", stage 0 has " << first;
  }
  return result;
}

FailureOr<std::vector<SmallVector<Tensor>>>
StageInterpreter::call(StringRef function, ArrayRef<SmallVector<Tensor>> inputs) {
  std::vector<SmallVector<Tensor>> results(stages.size());
  if (!isCut) {
    auto own = stages.front().call(function, inputs.front());
    if (failed(own))
      return failure();
    results.front() = std::move(*own);
    return results;
  }
  Exchange exchange(stages.size(), blockingSends);
  LogicalResult done = exchange.run([&](unsigned stage) -> LogicalResult {
    stages[stage].exchange = &exchange;
    auto own = stages[stage].call(function, inputs[stage]);
    stages[stage].exchange = nullptr;
    if (succeeded(own))
      results[stage] = std::move(*own);
    return own;
  });
  if (failed(done))
    return failure();
  return results;
}

//===------------------------------------------------------------------------------------------===//
// Kernels
//===------------------------------------------------------------------------------------------===//

/// Without others no stage can communicate.
static FailureOr<Exchange *> exchangeOf(Execution &execution, Operation *op) {
  if (Exchange *exchange = execution.interpreter.exchange)
    return exchange;
  return op->emitError() << "the stage runs alone";
}

static LogicalResult send(Execution &execution, pipe::SendOp op, ArrayRef<RankTensors> in,
                          MutableArrayRef<RankTensors>) {
  auto exchange = exchangeOf(execution, op);
  if (failed(exchange))
    return failure();
  // The passes of a loop with an order are awaited before they run again.
  auto loop = op->getParentOfType<train::AccumulateOp>();
  return (*exchange)->send(op, in[0], /*isAwaited=*/!loop || !loop.getOrder());
}

static LogicalResult recv(Execution &execution, pipe::RecvOp op, ArrayRef<RankTensors>,
                          MutableArrayRef<RankTensors> out) {
  auto exchange = exchangeOf(execution, op);
  if (failed(exchange))
    return failure();
  auto value = (*exchange)->receive(op);
  if (failed(value))
    return failure();
  out[0] = std::move(*value);
  return success();
}

/// In one program of all stages the value is there, and the sum is complete.
template <typename Op>
static LogicalResult sameValue(Execution &, Op, ArrayRef<RankTensors> in,
                               MutableArrayRef<RankTensors> out) {
  out[0] = in[0];
  return success();
}

static LogicalResult sum(Execution &execution, pipe::SumOp op, ArrayRef<RankTensors> in,
                         MutableArrayRef<RankTensors> out) {
  if (!pipe::stageOf(op))
    return sameValue(execution, op, in, out);
  auto exchange = exchangeOf(execution, op);
  if (failed(exchange))
    return failure();
  auto value = (*exchange)->sum(op, in[0]);
  if (failed(value))
    return failure();
  out[0] = std::move(*value);
  return success();
}

void partita::interp::addPipeKernels(KernelTable &table) {
  table.addRanks<pipe::MoveOp>(sameValue<pipe::MoveOp>);
  table.addRanks<pipe::ShareOp>(sameValue<pipe::ShareOp>);
  table.addRanks<pipe::PinOp>(sameValue<pipe::PinOp>);
  table.addRanks<pipe::CopiesOp>(sameValue<pipe::CopiesOp>);
  table.addRanks<pipe::SumOp>(sum);
  table.addRanks<pipe::SendOp>(send);
  table.addRanks<pipe::RecvOp>(recv);
}
