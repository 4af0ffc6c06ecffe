//===- KernelsToEmitC.cpp - kernels as functions of plain loops ----------------------------------===//

#include "lib/Emit/EmitC/KernelsToEmitC.h"
#include "dialects/Rt/Rt.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

Type rt::cppPointer(Type element, bool readOnly) {
  return emitc::PointerType::get(emitc::OpaqueType::get(
      element.getContext(), (readOnly ? "const " : "") + cppName(element).str()));
}

//===------------------------------------------------------------------------------------------===//
// Elementwise kernels
//===------------------------------------------------------------------------------------------===//

namespace {

/// The text of an expression, with `name[index]` for each `$name`.
struct KernelText {
  SmallVector<StringRef> names;
  SmallVector<std::string> indices;
  SmallVector<SmallVector<Value>> indexOperands; // for each index's `{}`
  SmallVector<Value> arguments;                  // pointers by name
  SmallVector<Value> operands;                   // of the verbatim op

  std::string element(unsigned i) {
    operands.push_back(arguments[i]);
    llvm::append_range(operands, indexOperands[i]);
    return "{}[" + indices[i] + "]";
  }
  std::string expression(StringRef text) {
    std::string result;
    while (true) {
      auto [before, after] = text.split('$');
      result += before;
      if (text.size() == before.size())
        return result;
      StringRef name = after.take_while(
          [](char c) { return isalnum(static_cast<unsigned char>(c)) || c == '_'; });
      for (auto [i, known] : llvm::enumerate(names))
        if (known == name)
          result += element(i);
      text = after.drop_front(name.size());
    }
  }
};

} // namespace

emitc::FuncOp rt::makeKernelFunction(OpBuilder &b, Location loc, StringRef name,
                                     ArrayRef<Type> types, ArrayRef<std::string> names) {
  auto function = emitc::FuncOp::create(b, loc, name, b.getFunctionType(types, {}));
  function.setSpecifiersAttr(b.getStrArrayAttr({"static"}));
  Block *body = function.addEntryBlock();
  for (auto [argument, name] : llvm::zip(body->getArguments(), names))
    argument.setLoc(NameLoc::get(b.getStringAttr(name)));
  b.setInsertionPointToEnd(body);
  return function;
}

std::string rt::loopCounter(int64_t loop) { return std::string(1, static_cast<char>('i' + loop)); }

static void convert(KernelOp kernel) {
  OpBuilder b(kernel);
  auto verbatim = [&](Location loc, StringRef line, ValueRange operands = {}) {
    emitc::VerbatimOp::create(b, loc, b.getStringAttr(line), operands);
  };
  int64_t loops = kernel.getLoops();
  KernelText text;
  SmallVector<Type> types;
  SmallVector<std::string> argumentNames;
  auto add = [&](ArrayAttr names, ArrayAttr elements, bool readOnly) {
    for (auto [name, type] : llvm::zip(names, elements)) {
      text.names.push_back(cast<StringAttr>(name).getValue());
      argumentNames.push_back(text.names.back().str());
      types.push_back(cppPointer(cast<TypeAttr>(type).getValue(), readOnly));
    }
  };
  add(kernel.getOutputs(), kernel.getOutputTypes(), false);
  add(kernel.getInputs(), kernel.getInputTypes(), true);
  for (int64_t loop = 0; loop < loops; ++loop) {
    types.push_back(b.getI64Type());
    argumentNames.push_back("n" + loopCounter(loop));
  }
  for (StringRef name : text.names)
    for (int64_t loop = 0; loop + 1 < loops; ++loop) {
      types.push_back(b.getI64Type());
      argumentNames.push_back(name.str() + "_" + loopCounter(loop));
    }
  Block *body = &makeKernelFunction(b, kernel.getLoc(), kernel.getSymName(), types, argumentNames)
                     .getBody()
                     .front();

  size_t buffers = text.names.size();
  std::string inner = loopCounter(loops - 1);
  for (size_t i = 0; i < buffers; ++i) {
    std::string index;
    SmallVector<Value> &strides = text.indexOperands.emplace_back();
    for (int64_t loop = 0; loop + 1 < loops; ++loop) {
      index += (index.empty() ? "" : " + ") + loopCounter(loop) + " * {}";
      strides.push_back(body->getArgument(buffers + loops + i * (loops - 1) + loop));
    }
    if (kernel.getSteps()[i])
      index += (index.empty() ? "" : " + ") +
               (kernel.getSteps()[i] == 1 ? inner
                                          : inner + " * " + std::to_string(kernel.getSteps()[i]));
    text.indices.push_back(index.empty() ? "0" : index);
    text.arguments.push_back(body->getArgument(i));
  }
  std::string indent;
  for (int64_t loop = 0; loop < loops; ++loop, indent += "  ") {
    if (loop + 1 == loops)
      verbatim(kernel.getLoc(), indent + "#pragma GCC ivdep");
    bool opens = loop + 1 == loops && kernel.getLocals().size() + kernel.getOutputs().size() > 1;
    verbatim(kernel.getLoc(),
             indent + llvm::formatv("for (int64_t {0} = 0; {0} < {{}; ++{0}){1}", loopCounter(loop),
                                    opens ? " {{" : "")
                          .str(),
             body->getArgument(buffers + loop));
  }
  auto statement = [&](std::string line) {
    verbatim(kernel.getLoc(), indent + line, text.operands);
    text.operands.clear();
  };
  bool several = kernel.getLocals().size() + kernel.getOutputs().size() > 1;
  for (StringRef local : kernel.getLocals().getAsValueRange<StringAttr>())
    statement(text.expression(local));
  for (auto [i, expression] :
       llvm::enumerate(kernel.getExpressions().getAsValueRange<StringAttr>())) {
    std::string target = text.element(i);
    statement(target + " = " + text.expression(expression) + ";");
  }
  if (several)
    verbatim(kernel.getLoc(), indent.substr(2) + "}");
  emitc::ReturnOp::create(b, kernel.getLoc(), Value());
  kernel.erase();
}

//===------------------------------------------------------------------------------------------===//
// Updates
//===------------------------------------------------------------------------------------------===//

void rt::addKernelLine(OpBuilder &b, Location loc, StringRef text, ArrayRef<std::string> names,
                       Block &body) {
  std::string line, plain;
  SmallVector<Value> operands;
  auto isWord = [](char c) { return isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (StringRef rest = text; !rest.empty();) {
    StringRef word = rest.take_while(isWord);
    auto name = llvm::find(names, word);
    if (!word.empty() && name != names.end()) {
      line += "{}";
      operands.push_back(body.getArgument(name - names.begin()));
    } else {
      word = word.empty() ? rest.take_front() : word;
      line += word == "{" ? "{{" : word.str();
    }
    rest = rest.drop_front(word.size());
  }
  emitc::VerbatimOp::create(b, loc, b.getStringAttr(operands.empty() ? text : StringRef(line)),
                            operands);
}

void rt::convertKernel(UpdateKernelOp kernel) {
  OpBuilder b(kernel);
  SmallVector<Type> types;
  SmallVector<std::string> names;
  ArrayAttr squares = kernel.getSquaresAttr(), largest = kernel.getLargestAttr();
  for (auto [list, name] : {std::pair(squares, "sums"), std::pair(largest, "largest")})
    if (list) {
      names.push_back(name);
      types.push_back(cppPointer(b.getF64Type()));
    }
  for (auto [i, name, type] : llvm::enumerate(kernel.getValues(), kernel.getTypes())) {
    names.push_back(cast<StringAttr>(name).getValue().str());
    types.push_back(cppPointer(cast<TypeAttr>(type).getValue(), kernel.isRead(i)));
  }
  names.push_back("n");
  types.push_back(b.getI64Type());
  for (StringRef scalar : kernel.getScalars().getAsValueRange<StringAttr>()) {
    names.push_back(scalar.str());
    types.push_back(emitc::OpaqueType::get(b.getContext(), "double"));
  }
  Block &body =
      makeKernelFunction(b, kernel.getLoc(), kernel.getSymName(), types, names).getBody().front();
  auto line = [&](const Twine &text) {
    addKernelLine(b, kernel.getLoc(), text.str(), names, body);
  };
  StringRef rounded = kernel.getRounded(),
            value = cast<StringAttr>(kernel.getValues()[0]).getValue();
  if (kernel.isStochastic())
    line("const uint64_t key = uint64_t(rounding_key) + uint64_t(rounding_first);");
  if (kernel.getConditional()) { // the value in 16 bits may have another place than the value
    std::string converted = ("(" + rounded + ", " + value + ", n").str();
    line("if (apply == 0) return" +
         Twine(!kernel.getRounding()   ? ""
               : kernel.isStochastic() ? " rounding_key < 0 ? convert" + converted +
                                             ") : convertStochastically" + converted + ", key, 0)"
                                       : " convert" + converted + ")") +
         ";");
  }
  for (StringRef text : kernel.getPrepared().getAsValueRange<StringAttr>())
    line(text);
  for (StringRef name : kernel.getFactors().getAsValueRange<StringAttr>())
    line("const float " + name + "_f = float(" + name + ");");
  int64_t count = squares ? static_cast<int64_t>(squares.size()) : 0,
          most = largest ? static_cast<int64_t>(largest.size()) : 0;
  for (int64_t sum = 0; sum < count; ++sum) // sixteen lanes in a fixed order, as in vector.h
    line("double lanes" + Twine(sum) + "[16] = {0};");
  for (int64_t max = 0; max < most; ++max)
    line("float most" + Twine(max) + "[16] = {0};");
  if (!squares)
    line("#pragma GCC ivdep");
  line("for (int64_t i = 0; i < n; ++i) {");
  for (StringRef text : kernel.getStatements().getAsValueRange<StringAttr>())
    line("  " + text);
  for (int64_t sum = 0; sum < count; ++sum) {
    StringRef element = cast<StringAttr>(squares[sum]).getValue();
    line("  lanes" + Twine(sum) + "[i % 16] += double(" + element + ") * double(" + element + ");");
  }
  for (int64_t max = 0; max < most; ++max) {
    std::string lane = "most" + std::to_string(max) + "[i % 16]";
    line("  " + lane + " = maximum(" + lane + ", " + cast<StringAttr>(largest[max]).getValue() +
         ");");
  }
  line("}");
  for (int64_t sum = 0; sum < count; ++sum) {
    line("double total" + Twine(sum) + " = 0;");
    line("for (double lane : lanes" + Twine(sum) + ") total" + Twine(sum) + " += lane;");
    line("sums[" + Twine(sum) + "] = total" + Twine(sum) + ";");
  }
  for (int64_t max = 0; max < most; ++max) {
    line("largest[" + Twine(max) + "] = 0;");
    line("for (float lane : most" + Twine(max) + ") largest[" + Twine(max) +
         "] = double(maximum(float(largest[" + Twine(max) + "]), lane));");
  }
  emitc::ReturnOp::create(b, kernel.getLoc(), Value());
  kernel.erase();
}

//===------------------------------------------------------------------------------------------===//
// Updates over tables of tensors
//===------------------------------------------------------------------------------------------===//

llvm::StringSet<> rt::kernelsOverTensors(ModuleOp module) {
  llvm::StringSet<> names;
  module.walk([&](UpdateAllOp update) { names.insert(update.getKernel()); });
  return names;
}

Type rt::stepsType(UpdateKernelOp kernel) {
  return emitc::OpaqueType::get(kernel.getContext(), "std::initializer_list<" +
                                                         UpdateAllOp::stepOf(kernel.getSymName()) +
                                                         ">");
}

/// Adds a struct of the kernel's scalars, and a function that calls the kernel for each row of a
/// table, after the kernel's own function.
static void addKernelOverTensors(UpdateKernelOp kernel) {
  OpBuilder b(kernel->getContext());
  b.setInsertionPointAfter(kernel);
  Location loc = kernel.getLoc();
  auto text = [&](const Twine &line) { emitc::VerbatimOp::create(b, loc, b.getStringAttr(line)); };
  std::string name = kernel.getSymName().str(), step = UpdateAllOp::stepOf(name), scalars, passed;
  for (StringRef scalar : kernel.getScalars().getAsValueRange<StringAttr>()) {
    scalars += (scalars.empty() ? "" : ", ") + scalar.str();
    passed += ", step." + scalar.str();
  }
  text("struct " + step + " {");
  text("  double " + scalars + ";");
  text("};");
  SmallVector<Type> types;
  SmallVector<std::string> names;
  std::string moved;
  size_t count = kernel.getValues().size();
  for (auto [i, value, type] : llvm::enumerate(kernel.getValues(), kernel.getTypes())) {
    names.push_back(cast<StringAttr>(value).getValue().str());
    types.push_back(cppPointer(cast<TypeAttr>(type).getValue(), i + 1 == count));
    moved += "moved(" + names.back() + ", row.offsets[" + std::to_string(i) + "]), ";
  }
  std::string row = "TensorRow<" + std::to_string(count) + ">";
  names.push_back("rows");
  types.push_back(
      emitc::OpaqueType::get(b.getContext(), "TensorRows<" + std::to_string(count) + ">"));
  names.push_back("steps");
  types.push_back(stepsType(kernel));
  Block &body =
      makeKernelFunction(b, loc, UpdateAllOp::calleeOf(name), types, names).getBody().front();
  auto line = [&](const Twine &each) { addKernelLine(b, loc, each.str(), names, body); };
  line("for (const " + row + " &row : rows) {");
  line("  const " + step + " &step = steps.begin()[row.step];");
  line("  " + name + "(" + moved + "row.elements" + passed + ");");
  line("}");
  emitc::ReturnOp::create(b, loc, Value());
}

void rt::convertKernelsToLoops(ModuleOp module) {
  for (auto kernel : llvm::make_early_inc_range(module.getOps<KernelOp>()))
    convert(kernel);
  llvm::StringSet<> overTensors = kernelsOverTensors(module);
  for (auto kernel : llvm::make_early_inc_range(module.getOps<UpdateKernelOp>())) {
    if (overTensors.contains(kernel.getSymName()))
      addKernelOverTensors(kernel);
    convertKernel(kernel);
  }
}
