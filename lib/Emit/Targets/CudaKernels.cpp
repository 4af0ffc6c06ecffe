//===- CudaKernels.cpp - converts kernels to the arithmetic of one element ------------------===//
//
// A kernel becomes a struct with the arithmetic of one element, as text of the module, and a
// function with the kernel's name that runs it over its operands. The runtime has the rest:
// partita_rt/cuda/map.cuh and update.cuh.
//
//===------------------------------------------------------------------------------------------===//

#include "lib/Emit/Targets/CudaKernels.h"
#include "dialects/Interfaces/Floats.h"
#include "dialects/Rt/Rt.h"
#include "lib/Emit/EmitC/KernelsToEmitC.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

namespace {

/// A kernel's function and the lines before it.
class CudaKernel {
public:
  explicit CudaKernel(Operation *kernel)
      : kernel(kernel), b(kernel), name(SymbolTable::getSymbolName(kernel).getValue()) {
    begin();
  }

  void line(const Twine &text) {
    emitc::VerbatimOp::create(b, kernel->getLoc(), b.getStringAttr(text));
  }
  void argument(Type type, StringRef called) {
    types.push_back(type);
    names.push_back(called.str());
  }
  /// Adds a function with one statement, in which names of arguments become operands.
  void addFunction(StringRef called, StringRef statement) {
    Block &body = makeKernelFunction(b, kernel->getLoc(), called, types, names).getBody().front();
    addKernelLine(b, kernel->getLoc(), statement, names, body);
    emitc::ReturnOp::create(b, kernel->getLoc(), Value());
    b.setInsertionPoint(kernel);
    types.clear();
    names.clear();
    begin();
  }
  void erase() { kernel->erase(); }

  Operation *kernel;
  OpBuilder b;
  StringRef name;

private:
  void begin() { argument(emitc::OpaqueType::get(b.getContext(), "const Stream &"), "stream"); }

  SmallVector<Type> types;
  SmallVector<std::string> names;
};

} // namespace

/// Returns the type in which an element is computed.
static StringRef laneName(Type element) {
  return isa<FloatType>(element) && !element.isF64() ? "float" : cppName(element);
}

/// Returns the expression with `name` for each `$name`, and for `float($name)` of 16-bit floats,
/// since these are floats already.
static std::string elementText(StringRef text, const llvm::StringSet<> &shortFloats) {
  constexpr StringLiteral widen = "float(";
  std::string result;
  while (true) {
    auto [before, after] = text.split('$');
    result += before;
    if (before.size() == text.size())
      return result;
    StringRef name =
        after.take_while([](char c) { return isalnum(static_cast<unsigned char>(c)) || c == '_'; });
    text = after.drop_front(name.size());
    if (shortFloats.contains(name) && before.ends_with(widen) && text.consume_front(")"))
      result.resize(result.size() - widen.size());
    result += name;
  }
}

//===------------------------------------------------------------------------------------------===//
// Elementwise kernels
//===------------------------------------------------------------------------------------------===//

static void convertForCuda(KernelOp kernel) {
  CudaKernel made(kernel);
  struct Operand {
    std::string name;
    Type element;
    bool written;
  };
  SmallVector<Operand> operands;
  auto add = [&](ArrayAttr names, ArrayAttr types, bool written) {
    for (auto [name, type] : llvm::zip(names, types))
      operands.push_back(
          {cast<StringAttr>(name).getValue().str(), cast<TypeAttr>(type).getValue(), written});
  };
  add(kernel.getOutputs(), kernel.getOutputTypes(), true);
  add(kernel.getInputs(), kernel.getInputTypes(), false);
  llvm::StringSet<> shortFloats;
  for (const Operand &operand : operands)
    if (isShortFloat(operand.element))
      shortFloats.insert(operand.name);

  std::string parameters;
  for (const Operand &operand : operands)
    parameters += (parameters.empty() ? "" : ", ") + laneName(operand.element).str() +
                  (operand.written ? " &" : " ") + operand.name;
  made.line("struct " + made.name + "_element {");
  made.line("  __device__ void operator()(" + parameters + ") const {");
  for (StringRef local : kernel.getLocals().getAsValueRange<StringAttr>())
    made.line("    " + elementText(local, shortFloats));
  for (auto [output, expression] : llvm::zip(kernel.getOutputs().getAsValueRange<StringAttr>(),
                                             kernel.getExpressions().getAsValueRange<StringAttr>()))
    made.line("    " + output + " = " + elementText(expression, shortFloats) + ";");
  made.line("  }");
  made.line("};");

  for (const Operand &operand : operands)
    made.argument(cppPointer(operand.element, !operand.written), operand.name);
  std::string sizes, call;
  int64_t loops = kernel.getLoops();
  for (int64_t loop = 0; loop < loops; ++loop) {
    std::string size = "n" + loopCounter(loop);
    made.argument(made.b.getI64Type(), size);
    sizes += (loop ? ", " : "") + size;
  }
  for (auto [i, operand] : llvm::enumerate(operands)) {
    std::string strides;
    for (int64_t loop = 0; loop + 1 < loops; ++loop) {
      std::string stride = operand.name + "_" + loopCounter(loop);
      made.argument(made.b.getI64Type(), stride);
      strides += (loop ? ", " : "") + stride;
    }
    call += std::string(", ") + (kernel.getSteps()[i] ? "each(" : "same(") + operand.name +
            (strides.empty() ? "" : ", {" + strides + "}") + ")";
  }
  made.addFunction(made.name, "mapElements(stream, {" + sizes + "}, " + made.name.str() +
                                  "_element()" + call + ");");
  made.erase();
}

//===------------------------------------------------------------------------------------------===//
// Updates
//===------------------------------------------------------------------------------------------===//

namespace {

/// The struct of an update, and its functions.
class CudaUpdate {
public:
  explicit CudaUpdate(UpdateKernelOp kernel)
      : kernel(kernel), made(kernel), squares(kernel.getSquaresAttr()),
        largest(kernel.getLargestAttr()) {
    for (auto [name, type] : llvm::zip(kernel.getValues(), kernel.getTypes()))
      values.push_back({cast<StringAttr>(name).getValue(), cast<TypeAttr>(type).getValue()});
    llvm::append_range(scalars, kernel.getScalars().getAsValueRange<StringAttr>());
    applies = kernel.getConditional();
    byChance = kernel.isStochastic();
  }

  /// Adds functions for one tensor, for all tensors of a table, or both.
  void convert(bool ofOne, bool overTensors) {
    made.line("struct " + UpdateAllOp::stepOf(made.name) + " {");
    printScalars();
    made.line("");
    made.line("  struct Element {");
    printFields();
    made.line("    __device__ void operator()(" + parameters() + ") const {");
    printElement();
    made.line("    }");
    made.line("  };");
    made.line("");
    made.line("  __device__ Element prepare() const {");
    printPreparation();
    made.line("  }");
    made.line("};");
    if (ofOne)
      printFunction();
    if (overTensors)
      printFunctionOverTensors();
    made.erase();
  }

private:
  size_t most() const { return largest ? largest.size() : 0; }

  void printScalars() {
    std::string list;
    for (StringRef scalar : scalars)
      list += (list.empty() ? "" : ", ") + scalar.str() + "_at";
    made.line("  Scalar " + list + ";");
  }

  void printFields() {
    std::string floats;
    for (StringRef name : kernel.getFactors().getAsValueRange<StringAttr>())
      floats += (floats.empty() ? "" : ", ") + name.str() + "_f";
    if (!floats.empty())
      made.line("    float " + floats + ";");
    if (byChance)
      made.line("    uint64_t key;");
    if (applies)
      made.line(byChance ? "    bool applies, nearest;" : "    bool applies;");
  }

  /// Returns true if prepared statements use the scalar.
  bool isPrepared(StringRef scalar) const {
    if (scalar == UpdateKernelOp::kApply || scalar == UpdateKernelOp::kRoundingKey ||
        scalar == UpdateKernelOp::kRoundingFirst ||
        llvm::is_contained(kernel.getFactors().getAsValueRange<StringAttr>(), scalar))
      return true;
    auto isWord = [](char c) { return isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    for (StringRef text : kernel.getPrepared().getAsValueRange<StringAttr>())
      for (size_t at = text.find(scalar); at != StringRef::npos; at = text.find(scalar, at + 1)) {
        size_t end = at + scalar.size();
        if ((at == 0 || !isWord(text[at - 1])) && (end == text.size() || !isWord(text[end])))
          return true;
      }
    return false;
  }

  /// Returns the parameters: elements are floats, which are rounded to 16 bits when they are
  /// stored.
  std::string parameters() const {
    std::string text = byChance ? "int64_t i" : "int64_t";
    if (squares)
      text += ", double (&sums)[" + std::to_string(squares.size() + most()) + "]";
    for (auto [i, value] : llvm::enumerate(values))
      text += (kernel.isRead(i) ? ", float " : ", float &") + value.first.str();
    return text;
  }

  /// Returns the loop's statement with `p` for each element `p[i]`.
  static std::string statementText(StringRef text) {
    std::string result = text.str();
    for (size_t at; (at = result.find("[i]")) != std::string::npos;)
      result.erase(at, 3);
    return result;
  }

  void printElement() {
    StringRef value = values.front().first;
    std::string chance =
        ("float(roundStochastically(" + value + ", uint16_t(mix64(key + uint64_t(i)) >> 48)))")
            .str();
    if (applies && !kernel.getRounding())
      made.line("      if (!applies) return;");
    else if (applies) {
      made.line("      if (!applies) {");
      made.line("        " + kernel.getRounded() + " = " +
                (byChance ? "nearest ? " + value + " : " + chance : value.str()) + ";");
      made.line("        return;");
      made.line("      }");
    }
    for (StringRef text : kernel.getStatements().getAsValueRange<StringAttr>())
      made.line("      " + statementText(text));
    if (squares)
      for (auto [i, element] : llvm::enumerate(squares.getAsValueRange<StringAttr>()))
        made.line("      sums[" + Twine(i) + "] += double(" + element + ") * double(" + element +
                  ");");
    for (size_t i = 0; i < most(); ++i) {
      std::string slot = "sums[" + std::to_string(squares.size() + i) + "]";
      made.line("      " + slot + " = maximum(" + slot + ", double(" +
                cast<StringAttr>(largest[i]).getValue() + "));");
    }
  }

  /// Powers are of the step's number, for which update.cuh has a shortcut.
  static std::string preparedText(StringRef text) {
    std::string result = text.str();
    for (size_t at = 0; (at = result.find("pow(", at)) != std::string::npos; at += 6)
      result.replace(at, 4, "power(");
    return result;
  }

  void printPreparation() {
    for (StringRef scalar : scalars)
      if (isPrepared(scalar))
        made.line("    const double " + scalar + " = " + scalar + "_at.read();");
    for (StringRef text : kernel.getPrepared().getAsValueRange<StringAttr>())
      made.line("    " + preparedText(text));
    std::string result;
    auto add = [&](const Twine &text) { result += (result.empty() ? "" : ", ") + text.str(); };
    for (StringRef name : kernel.getFactors().getAsValueRange<StringAttr>())
      add("float(" + name + ")");
    if (byChance)
      add("uint64_t(rounding_key) + uint64_t(rounding_first)");
    if (applies)
      add("apply != 0");
    if (applies && byChance)
      add("rounding_key < 0");
    made.line("    return {" + result + "};");
  }

  /// Returns ", updated(p), each(g)" and adds the arguments.
  std::string addOperands() {
    std::string operands;
    for (auto [i, value] : llvm::enumerate(values)) {
      bool isRead = kernel.isRead(i);
      made.argument(cppPointer(value.second, isRead), value.first);
      operands += std::string(isRead || kernel.isWritten(i) ? ", each(" : ", updated(") +
                  value.first.str() + ")";
    }
    return operands;
  }

  void printFunctionOverTensors() {
    std::string operands = addOperands();
    made.argument(
        emitc::OpaqueType::get(made.b.getContext(),
                               "const DeviceRows<" + std::to_string(values.size()) + "> &"),
        "rows");
    made.argument(stepsType(kernel), "steps");
    made.addFunction(UpdateAllOp::calleeOf(made.name),
                     "updateAll(stream, rows, steps" + operands + ");");
  }

  void printFunction() {
    if (squares)
      made.argument(cppPointer(made.b.getF64Type()), "sums");
    if (largest)
      made.argument(cppPointer(made.b.getF64Type()), "largest");
    std::string operands = addOperands(), list;
    made.argument(made.b.getI64Type(), "n");
    for (StringRef scalar : scalars) {
      made.argument(emitc::OpaqueType::get(made.b.getContext(), "Scalar"), scalar);
      list += (list.empty() ? "" : ", ") + scalar.str();
    }
    std::string step = UpdateAllOp::stepOf(made.name) + "{" + list + "}";
    std::string measures = "sumSquares<" + std::to_string(squares ? squares.size() : 0) + ", " +
                           std::to_string(most()) + ">(stream, sums, " +
                           (largest ? "largest" : "nullptr") + ", n, ";
    made.addFunction(made.name,
                     (squares ? measures : "updateElements(stream, n, ") + step + operands + ");");
  }

  mutable UpdateKernelOp kernel;
  CudaKernel made;
  ArrayAttr squares, largest;
  SmallVector<std::pair<StringRef, Type>> values;
  SmallVector<StringRef> scalars;
  bool applies, byChance;
};

} // namespace

/// Adds a loop for kernels of updates that the host makes.
static void addHostKernels(ModuleOp module) {
  llvm::StringSet<> onHost, onDevice;
  module.walk(
      [&](UpdateOp update) { (update.getTile() ? onHost : onDevice).insert(update.getKernel()); });
  for (auto kernel : llvm::make_early_inc_range(module.getOps<UpdateKernelOp>()))
    if (StringRef name = kernel.getSymName(); onHost.contains(name)) {
      UpdateKernelOp loop = kernel;
      if (onDevice.contains(name))
        loop = cast<UpdateKernelOp>(OpBuilder(kernel).clone(*kernel));
      loop.setSymName((name + "_on_host").str());
      convertKernel(loop);
    }
}

void rt::convertKernelsToCuda(ModuleOp module) {
  addHostKernels(module);
  for (auto kernel : llvm::make_early_inc_range(module.getOps<KernelOp>()))
    convertForCuda(kernel);
  llvm::StringSet<> overTensors = kernelsOverTensors(module), ofOne;
  module.walk([&](UpdateOp update) { ofOne.insert(update.getKernel()); });
  for (auto kernel : llvm::make_early_inc_range(module.getOps<UpdateKernelOp>())) {
    bool isOverTensors = overTensors.contains(kernel.getSymName());
    CudaUpdate(kernel).convert(!isOverTensors || ofOne.contains(kernel.getSymName()),
                               isOverTensors);
  }
}
