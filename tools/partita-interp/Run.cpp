//===- Run.cpp - executes a function, or two and compares them ----------------------------------------===//

#include "Modes.h"
#include "dialects/Train/Train.h"
#include "partita/Interp/RandomInputs.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace partita;
using namespace partita::interp;

double partita::interp::relativeError(const Tensor &a, const Tensor &b) {
  if (a.shape != b.shape || a.isReal != b.isReal)
    return INFINITY;
  double worst = 0, largest = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    double difference = std::abs(a.number(i) - b.number(i));
    if (std::isnan(difference) && !(std::isnan(a.number(i)) && std::isnan(b.number(i))) &&
        a.number(i) != b.number(i))
      return INFINITY;
    worst = std::max(worst, std::isnan(difference) ? 0 : difference);
    largest = std::max(largest, std::isfinite(b.number(i)) ? std::abs(b.number(i)) : 0);
  }
  return worst == 0 ? 0 : worst / largest;
}

static void printNested(const Tensor &tensor, size_t dim, int64_t &next, llvm::raw_ostream &os) {
  if (dim == tensor.shape.size()) {
    os << llvm::format("%.6g", tensor.number(next++));
    return;
  }
  os << "[";
  for (int64_t i = 0; i < tensor.shape[dim]; ++i) {
    os << (i ? ", " : "");
    printNested(tensor, dim + 1, next, os);
  }
  os << "]";
}

void partita::interp::print(const Tensor &tensor, llvm::raw_ostream &os) {
  llvm::interleave(tensor.shape, os, "x");
  os << (tensor.shape.empty() ? "= " : " = ");
  if (tensor.size() <= 64) {
    int64_t next = 0;
    return printNested(tensor, 0, next, os);
  }
  double sum = 0, low = tensor.number(0), high = low;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    sum += tensor.number(i);
    low = std::min(low, tensor.number(i));
    high = std::max(high, tensor.number(i));
  }
  os << llvm::format("sum %.6g, from %.6g to %.6g", sum, low, high);
}

/// Calls the function `run.times` times with new arguments; the results of the last.
static FailureOr<SmallVector<Tensor>> callOften(Interpreter &interpreter, StringRef name, const Run &run) {
  auto function = interpreter.module().lookupSymbol<func::FuncOp>(name);
  if (!function)
    return interpreter.module().emitError() << "has no function '" << name << "'";
  if (failed(initialize(interpreter, run.values)))
    return failure();
  FailureOr<SmallVector<Tensor>> results = failure();
  for (unsigned i = 0; i < std::max(run.times, 1u); ++i) {
    interpreter.options.stepNumber = i + 1;
    auto inputs = randomInputs(function, run.seed + i);
    if (failed(inputs) || failed(results = interpreter.call(name, *inputs)))
      return failure();
  }
  return results;
}

LogicalResult partita::interp::runFunction(ModuleOp module, const Run &run) {
  std::string name = run.function;
  if (name.empty()) {
    auto functions = module.getOps<func::FuncOp>();
    if (functions.empty())
      return module.emitError() << "has no function to call";
    name = (*functions.begin()).getSymName().str();
  }
  Interpreter interpreter(module, run.options);
  auto results = callOften(interpreter, name, run);
  if (failed(results))
    return failure();
  llvm::raw_ostream &os = llvm::outs();
  for (auto [i, result] : llvm::enumerate(*results)) {
    os << "result " << i << ": ";
    print(result, os);
    os << "\n";
  }
  for (auto &[parameter, gradient] : interpreter.gradients()) {
    os << "gradient " << parameter << ": ";
    print(gradient, os);
    os << "\n";
  }
  for (Operation &op : module.getOps())
    if (isa<train::ParameterOp, train::StateOp>(op)) {
      StringRef symbol = SymbolTable::getSymbolName(&op);
      auto value = interpreter.parameter(symbol);
      if (failed(value))
        return failure();
      os << "value " << symbol << ": ";
      print(*value, os);
      os << "\n";
    }
  return success();
}

LogicalResult partita::interp::compareFunctions(ModuleOp module, const Run &run) {
  auto [first, second] = StringRef(run.function).split(',');
  Interpreter a(module, run.options), b(module, run.options);
  auto left = callOften(a, first, run), right = callOften(b, second, run);
  if (failed(left) || failed(right))
    return failure();
  if (left->size() != right->size())
    return module.emitError() << "'" << first << "' has " << left->size() << " results, '" << second << "' has "
                              << right->size();
  for (auto [i, x, y] : llvm::enumerate(*left, *right)) {
    double error = relativeError(x, y);
    if (!(error <= run.tolerance))
      return module.lookupSymbol(first)->emitError()
             << "result " << i << " of '" << first << "' and '" << second << "' differ by " << error
             << ", more than " << run.tolerance;
  }
  llvm::outs() << "equal: " << first << " " << second << "\n";
  return success();
}
