//===- ComparedProgram.cpp - one of the two programs that verify compares ---------------------===//

#include "lib/Interp/ComparedProgram.h"
#include "dialects/Pipe/Pipe.h"

using namespace mlir;
using namespace partita;
using namespace partita::interp;

/// NaN is the same as NaN: that the whole program computes it is reported where it is compared.
static bool isSame(const Tensor &a, const Tensor &b) {
  if (a.shape != b.shape || a.isReal != b.isReal)
    return false;
  return llvm::all_of(llvm::seq<int64_t>(0, a.size()), [&](int64_t i) {
    double x = a.number(i), y = b.number(i);
    return x == y || (std::isnan(x) && std::isnan(y));
  });
}

/// What several stages have must be the same on each.
static LogicalResult addTo(Named &named, const std::string &name, Tensor value, Operation *at) {
  auto [known, isNew] = named.try_emplace(name, std::move(value));
  if (isNew || isSame(known->second, value))
    return success();
  return at->emitError() << "stage " << pipe::stageOf(at).value_or(0) << " has another value of '"
                         << name << "' than a stage before it";
}

FailureOr<ComparedProgram> ComparedProgram::of(ModuleOp module, const VerifyOptions &options) {
  // As transports may: no send is complete before its receive has begun.
  auto program = StageInterpreter::create(module, options.interpreter, /*blockingSends=*/true);
  return failed(program) ? FailureOr<ComparedProgram>()
                         : ComparedProgram(std::move(*program), module);
}

void ComparedProgram::setStep(int64_t step) {
  for (Interpreter &stage : program.stages)
    stage.options.stepNumber = step;
}

LogicalResult ComparedProgram::initialize(const InitialValues &values) {
  return success(llvm::all_of(program.stages, [&](Interpreter &stage) {
    return succeeded(interp::initialize(stage, values));
  }));
}

func::FuncOp ComparedProgram::function(train::EntryPoint entry) {
  return train::lookup<func::FuncOp>(interpreter().module(), entry);
}

FailureOr<Named> ComparedProgram::call(train::EntryPoint entry, ArrayRef<Tensor> inputs) {
  auto results = program.call(function(entry).getName(),
                              std::vector(program.stages.size(), SmallVector<Tensor>(inputs)));
  if (failed(results))
    return failure();
  Named named;
  for (auto [stage, list] : llvm::zip(program.stages, *results)) {
    auto own = train::lookup<func::FuncOp>(stage.module(), entry);
    for (auto [i, result] : llvm::enumerate(list)) {
      auto number = own.getResultAttrOfType<IntegerAttr>(i, pipe::PipeDialect::kResult);
      std::string name = train::nameOf(entry).str() + "#" +
                         std::to_string(number ? number.getInt() : static_cast<int64_t>(i));
      if (failed(addTo(named, name, std::move(result), own)))
        return failure();
    }
  }
  return named;
}

FailureOr<Named> ComparedProgram::gradients() {
  Named named;
  for (Interpreter &stage : program.stages)
    for (auto &[name, gradient] : stage.gradients())
      if (failed(addTo(named, name, gradient, stage.module())))
        return failure();
  return named;
}

/// The values of symbols, by the names that `nameOf` gives them; without those that it gives none.
template <typename Op>
FailureOr<Named> ComparedProgram::collect(llvm::function_ref<StringRef(Op)> nameOf) {
  Named named;
  for (Interpreter &stage : program.stages)
    for (auto op : stage.module().getOps<Op>()) {
      StringRef name = nameOf(op);
      if (name.empty())
        continue;
      auto value = stage.parameter(op.getSymName());
      if (failed(value) || failed(addTo(named, name.str(), std::move(*value), op)))
        return failure();
    }
  return named;
}

FailureOr<Named> ComparedProgram::parameters() {
  return collect<train::ParameterOp>([](train::ParameterOp op) { return op.getSymName(); });
}

FailureOr<Named> ComparedProgram::states() {
  return collect<train::StateOp>(
      [](train::StateOp state) { return state.isMaster() ? StringRef() : state.getSymName(); });
}

FailureOr<Named> ComparedProgram::masters() {
  return collect<train::StateOp>(
      [](train::StateOp state) { return state.isMaster() ? *state.getOf() : StringRef(); });
}
