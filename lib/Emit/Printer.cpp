//===- Printer.cpp - prints EmitC as readable C++ ---------------------------------------------===//

#include "lib/Emit/Printer.h"
#include "dialects/Interfaces/Provenance.h"
#include "dialects/Rt/Names.h"

using namespace mlir;
using namespace partita;
using namespace partita::emit;

static constexpr size_t kColumns = 100;

static std::string typeText(Type type) {
  if (auto opaque = dyn_cast<emitc::OpaqueType>(type))
    return opaque.getValue().str();
  if (type.isF32())
    return "float";
  if (type.isInteger(1))
    return "bool";
  if (auto integer = dyn_cast<IntegerType>(type))
    return "int" + std::to_string(integer.getWidth()) + "_t";
  return "auto";
}

std::string emit::declare(Type type, StringRef name) {
  if (auto pointer = dyn_cast<emitc::PointerType>(type))
    return typeText(pointer.getPointee()) + " *" + name.str();
  std::string text = typeText(type);
  return text + (StringRef(text).ends_with("&") ? "" : " ") + name.str();
}

/// Returns where to break a long line: after the last ", " that fits and is outside of string
/// literals; 0 if there is none.
static size_t breakPoint(StringRef text, size_t limit) {
  bool quoted = false;
  int depth = 0;
  size_t best = 0, bestInBraces = 0;
  for (size_t i = 0; i + 1 < text.size() && i < limit; ++i) {
    if (text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      quoted = !quoted;
    if (quoted)
      continue;
    depth += text[i] == '{' ? 1 : text[i] == '}' ? -1 : 0;
    if (text[i] == ',' && text[i + 1] == ' ')
      (depth == 0 ? best : bestInBraces) = i + 2;
  }
  return best ? best : bestInBraces;
}

void FunctionPrinter::line(unsigned depth, StringRef text, StringRef remark) {
  if (text.empty()) {
    os << '\n';
    return;
  }
  bool directive = text.starts_with("#") || text.starts_with("//");
  size_t indent = 2 * depth;
  while (!directive && indent + text.size() > kColumns) {
    size_t at = breakPoint(text, kColumns - indent);
    if (at == 0)
      break;
    os.indent(indent) << text.take_front(at).rtrim() << '\n';
    text = text.drop_front(at);
    indent = 2 * depth + 4;
  }
  os.indent(indent) << text;
  if (!remark.empty())
    os << " // " << remark;
  os << '\n';
}

std::string FunctionPrinter::nameFor(Value value, StringRef fallback) {
  StringRef given = provenance::nameIn(value.getLoc());
  std::string base = rt::identifier(given.empty() ? fallback : given), name = base;
  for (unsigned i = 2; !taken.insert(name).second; ++i)
    name = base + "_" + std::to_string(i);
  return names[value] = name;
}

void FunctionPrinter::define(Value value, std::string expression, unsigned depth,
                             StringRef remark) {
  if (provenance::nameIn(value.getLoc()).empty()) {
    names[value] = std::move(expression);
    return;
  }
  line(depth, declare(value.getType(), nameFor(value)) + " = " + expression + ";", remark);
}

static constexpr StringLiteral kWord = "0123456789_abcdefghijklmnopqrstuvwxyz"
                                       "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Adds every word of `text` before an opening parenthesis, except members (`rank.at(`), which no
/// variable hides.
static void addCalled(StringRef text, llvm::StringSet<> &names) {
  for (size_t at = text.find('('); at != StringRef::npos; at = text.find('(', at + 1)) {
    StringRef called = text.take_front(at), before = called.rtrim(kWord);
    if (!before.ends_with(".") && !before.ends_with("->"))
      names.insert(called.drop_front(before.size()));
  }
}

void FunctionPrinter::reserveCalled(emitc::FuncOp function) {
  function.walk([&](Operation *op) {
    if (auto call = dyn_cast<emitc::CallOpaqueOp>(op))
      taken.insert(call.getCallee());
    else if (auto verbatim = dyn_cast<emitc::VerbatimOp>(op))
      addCalled(verbatim.getValue(), taken);
    else if (auto literal = dyn_cast<emitc::LiteralOp>(op))
      addCalled(literal.getValue(), taken);
  });
}

LogicalResult FunctionPrinter::print(emitc::FuncOp function) {
  names.clear();
  taken.clear();
  reserveCalled(function);
  std::string header = "static void " + function.getName().str() + "(";
  for (auto [i, argument] : llvm::enumerate(function.getArguments()))
    header += (i ? ", " : "") + declare(argument.getType(), nameFor(argument));
  line(0, header + ") {");
  if (failed(printBlock(function.getBody().front(), 1)))
    return failure();
  line(0, "}");
  return success();
}

void FunctionPrinter::print(emitc::VerbatimOp text) {
  StringRef full = text.getValue(), trimmed = full.ltrim(' ');
  auto remark = text->getAttrOfType<StringAttr>(kCommentAttr);
  line(static_cast<unsigned>((full.size() - trimmed.size()) / 2), trimmed,
       remark ? remark.getValue() : "");
}

LogicalResult FunctionPrinter::printBlock(Block &block, unsigned depth) {
  for (Operation &op : block)
    if (failed(printOp(&op, depth)))
      return failure();
  return success();
}

LogicalResult FunctionPrinter::printOp(Operation *op, unsigned depth) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<emitc::ReturnOp, emitc::YieldOp>([](auto) { return success(); })
      .Case<emitc::LiteralOp>([&](auto literal) {
        define(literal, literal.getValue().str(), depth);
        return success();
      })
      .Case<emitc::AddOp>([&](auto add) {
        define(add, use(add->getOperand(0)) + " + " + use(add->getOperand(1)), depth);
        return success();
      })
      .Case<emitc::MulOp>([&](auto mul) {
        define(mul, use(mul->getOperand(0)) + " * " + use(mul->getOperand(1)), depth);
        return success();
      })
      .Case<emitc::CallOpaqueOp>([&](auto call) {
        printCall(call, depth);
        return success();
      })
      .Case<emitc::VerbatimOp>([&](auto verbatim) {
        printVerbatim(verbatim, depth);
        return success();
      })
      .Case<emitc::ForOp>([&](auto loop) { return printFor(loop, depth); })
      .Case<emitc::CmpOp>([&](auto compare) {
        if (compare.getPredicate() != emitc::CmpPredicate::eq)
          return compare.emitOpError() << "compares otherwise than by ==", failure();
        define(compare, use(compare.getLhs()) + " == " + use(compare.getRhs()), depth);
        return success();
      })
      .Case<emitc::IfOp>([&](auto branch) { return printIf(branch, depth); })
      .Default([](Operation *other) {
        return other->emitOpError() << "cannot be printed; run rt-to-emitc first";
      });
}

static std::string attributeText(Attribute attribute) {
  if (auto opaque = dyn_cast<emitc::OpaqueAttr>(attribute))
    return opaque.getValue().str();
  if (auto integer = dyn_cast<IntegerAttr>(attribute))
    return std::to_string(integer.getInt());
  std::string text;
  llvm::raw_string_ostream(text) << attribute;
  return text;
}

void FunctionPrinter::printCall(emitc::CallOpaqueOp call, unsigned depth) {
  std::string text = call.getCallee().str();
  if (std::optional<ArrayAttr> templates = call.getTemplateArgs()) {
    text += "<";
    for (auto [i, argument] : llvm::enumerate(*templates))
      text += (i ? ", " : "") + attributeText(argument);
    text += ">";
  }
  SmallVector<std::string> arguments;
  if (std::optional<ArrayAttr> args = call.getArgs()) {
    for (Attribute argument : *args) {
      auto integer = dyn_cast<IntegerAttr>(argument);
      bool isOperand = integer && isa<IndexType>(integer.getType());
      arguments.push_back(isOperand ? use(call.getOperand(integer.getInt()))
                                    : attributeText(argument));
    }
  } else {
    for (Value operand : call.getOperands())
      arguments.push_back(use(operand));
  }
  text += "(" + llvm::join(arguments, ", ") + ")";
  auto remark = call->getAttrOfType<StringAttr>(kCommentAttr);
  if (call.getNumResults() == 1)
    define(call.getResult(0), text, depth, remark ? remark.getValue() : "");
  else
    line(depth, text + ";");
}

void FunctionPrinter::printVerbatim(emitc::VerbatimOp verbatim, unsigned depth) {
  StringRef text = verbatim.getValue();
  std::string result;
  unsigned operand = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{' && i + 1 < text.size() && (text[i + 1] == '{' || text[i + 1] == '}')) {
      result += text[i + 1] == '{' ? "{" : use(verbatim.getFmtArgs()[operand++]);
      ++i;
    } else {
      result += text[i];
    }
  }
  StringRef trimmed = StringRef(result).ltrim(' ');
  size_t extra = result.size() - trimmed.size();
  auto remark = verbatim->getAttrOfType<StringAttr>(kCommentAttr);
  line(depth + static_cast<unsigned>(extra / 2), trimmed, remark ? remark.getValue() : "");
}

LogicalResult FunctionPrinter::printIf(emitc::IfOp branch, unsigned depth) {
  line(depth, "if (" + use(branch.getCondition()) + ") {");
  if (failed(printBlock(branch.getThenRegion().front(), depth + 1)))
    return failure();
  line(depth, "}");
  return success();
}

LogicalResult FunctionPrinter::printFor(emitc::ForOp loop, unsigned depth) {
  // EmitC's textual form drops the location, and with it the name, of a loop's variable.
  std::string step = use(loop.getStep());
  std::string name = nameFor(loop.getInductionVar(), loop->hasAttr("rt.layer") ? "layer"
                                                     : step == "1"             ? "micro"
                                                                               : "group");
  line(depth, "for (int64_t " + name + " = " + use(loop.getLowerBound()) + "; " + name + " < " +
                  use(loop.getUpperBound()) + "; " +
                  (step == "1" ? "++" + name : name + " += " + step) + ") {");
  if (failed(printBlock(*loop.getBody(), depth + 1)))
    return failure();
  line(depth, "}");
  taken.erase(name); // the next loop may use the name, too
  return success();
}
