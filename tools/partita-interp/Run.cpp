//===- Run.cpp - executes a function, or two and compares them --------------------------------===//

#include "dialects/Par/Placement.h"
#include "dialects/Train/Train.h"
#include "partita/Interp/RandomInputs.h"
#include "tools/partita-interp/Modes.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

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

/// The next arguments of `function` out of a list of numbers.
static FailureOr<SmallVector<Tensor>> takeInputs(func::FuncOp function,
                                                 ArrayRef<StringRef> &numbers) {
  SmallVector<Tensor> inputs;
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
    Tensor &input = inputs.emplace_back(par::fullType(type));
    if (static_cast<int64_t>(numbers.size()) < input.size())
      return function.emitError() << "argument " << i << " needs " << input.size() << " numbers, "
                                  << numbers.size() << " are left";
    for (int64_t e = 0; e < input.size(); ++e) {
      double number;
      if (numbers[e].getAsDouble(number))
        return function.emitError() << "'" << numbers[e] << "' is not a number";
      input.setNumber(e, number);
    }
    numbers = numbers.drop_front(input.size());
  }
  return inputs;
}

/// Calls the function `run.times` times; the results of the last call.
static FailureOr<SmallVector<Tensor>> callOften(Interpreter &interpreter, StringRef name,
                                                const Run &run) {
  auto function = interpreter.module().lookupSymbol<func::FuncOp>(name);
  if (!function)
    return interpreter.module().emitError() << "has no function '" << name << "'";
  if (failed(initialize(interpreter, run.values)))
    return failure();
  std::unique_ptr<llvm::MemoryBuffer> file;
  SmallVector<StringRef> words;
  if (!run.inputs.empty()) {
    auto buffer = llvm::MemoryBuffer::getFile(run.inputs);
    if (!buffer)
      return function.emitError() << run.inputs << ": " << buffer.getError().message();
    file = std::move(*buffer);
    llvm::SplitString(file->getBuffer(), words);
  }
  ArrayRef<StringRef> numbers = words;
  std::string log = "step,loss\n", problem;
  FailureOr<SmallVector<Tensor>> results = failure();
  for (unsigned i = 0; i < run.times; ++i) {
    interpreter.options.stepNumber = i + 1;
    auto inputs = file ? takeInputs(function, numbers) : randomInputs(function, run.seed + i);
    if (failed(inputs) || failed(results = interpreter.call(name, *inputs)))
      return failure();
    if (!results->empty() && results->front().size() == 1)
      log += llvm::formatv("{0},{1:e16}\n", i + 1, results->front().number(0)).str();
    if (i == 0 && !run.gradients.empty())
      problem = writeSafetensors(run.gradients, interpreter.gradients());
  }
  if (!run.log.empty()) {
    std::error_code error;
    llvm::raw_fd_ostream os(run.log, error);
    if (!error) {
      os << log;
      os.close();
      error = os.error();
      os.clear_error(); // unread, it would end the process
    }
    if (error)
      problem = run.log + ": " + error.message();
  }
  if (!problem.empty())
    return function.emitError() << problem;
  return results;
}

std::string partita::interp::writeSafetensors(StringRef path,
                                              const std::map<std::string, Tensor> &tensors) {
  llvm::json::Object header;
  uint64_t offset = 0;
  for (auto &[name, tensor] : tensors) {
    uint64_t end = offset + tensor.size() * sizeof(double);
    header[llvm::json::fixUTF8(name)] =
        llvm::json::Object{{"dtype", "F64"},
                           {"shape", llvm::json::Array(tensor.shape)},
                           {"data_offsets", llvm::json::Array{offset, end}}};
    offset = end;
  }
  std::string text = llvm::formatv("{0}", llvm::json::Value(std::move(header))).str();
  std::error_code error;
  llvm::raw_fd_ostream os(path, error);
  if (error)
    return (path + ": " + error.message()).str();
  char length[8];
  llvm::support::endian::write64le(length, text.size());
  os.write(length, 8);
  os << text;
  for (auto &[name, tensor] : tensors)
    for (int64_t i = 0; i < tensor.size(); ++i) {
      double value = tensor.number(i);
      os.write(reinterpret_cast<const char *>(&value), sizeof(value)); // little-endian hosts
    }
  return {};
}

/// Results by their names in the model, or by their numbers where they have none.
static std::map<std::string, Tensor> namedResults(func::FuncOp function, ArrayRef<Tensor> results) {
  std::map<std::string, Tensor> named;
  for (auto [i, result] : llvm::enumerate(results)) {
    auto name = function.getResultAttrOfType<StringAttr>(i, train::TrainDialect::kName);
    named[name ? name.str() : std::to_string(i)] = result;
  }
  return named;
}

FailureOr<std::map<std::string, Tensor>> partita::interp::valuesOf(Interpreter &interpreter) {
  std::map<std::string, Tensor> values;
  for (Operation &op : interpreter.module().getOps())
    if (isa<train::ParameterOp, train::StateOp>(op)) {
      StringRef symbol = SymbolTable::getSymbolName(&op);
      auto value = interpreter.parameter(symbol);
      if (failed(value))
        return failure();
      values[symbol.str()] = std::move(*value);
    }
  return values;
}

static LogicalResult runOne(ModuleOp module, StringRef name, const Run &run) {
  Interpreter interpreter(module, run.options);
  auto results = callOften(interpreter, name, run);
  if (failed(results))
    return failure();
  auto values = valuesOf(interpreter);
  if (failed(values))
    return failure();
  if (!run.parameters.empty())
    if (std::string problem = writeSafetensors(run.parameters, *values); !problem.empty())
      return module.emitError() << problem;
  if (!run.results.empty()) {
    auto function = module.lookupSymbol<func::FuncOp>(name);
    std::string problem = writeSafetensors(run.results, namedResults(function, *results));
    return problem.empty() ? success() : module.emitError() << problem;
  }
  auto show = [](const Twine &label, const Tensor &value) {
    llvm::outs() << label << ": ";
    print(value, llvm::outs());
    llvm::outs() << "\n";
  };
  for (auto [i, result] : llvm::enumerate(*results))
    show("result " + Twine(i), result);
  for (auto &[parameter, gradient] : interpreter.gradients())
    show("gradient " + parameter, gradient);
  for (auto &[symbol, value] : *values)
    show("value " + symbol, value);
  return success();
}

LogicalResult partita::interp::runFunction(ModuleOp module, const Run &run) {
  if (!run.function.empty())
    return runOne(module, run.function, run);
  for (auto function : module.getOps<func::FuncOp>()) {
    llvm::outs() << "@" << function.getSymName() << "\n";
    if (failed(runOne(module, function.getSymName(), run)))
      return failure();
  }
  return success();
}

LogicalResult partita::interp::compareFunctions(ModuleOp module, const Run &run) {
  auto [first, second] = StringRef(run.function).split(',');
  if (first.empty() || second.empty() || second.contains(','))
    return module.emitError() << "--equal: '" << run.function << "' is not two functions, a,b";
  Interpreter a(module, run.options), b(module, run.options);
  auto left = callOften(a, first, run), right = callOften(b, second, run);
  if (failed(left) || failed(right))
    return failure();
  if (left->size() != right->size())
    return module.emitError() << "'" << first << "' has " << left->size() << " results, '" << second
                              << "' has " << right->size();
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
