//===- Target.cpp - see Target.h --------------------------------------------------------------===//

#include "dialects/Rt/Target.h"
#include "dialects/Rt/Rt.h"
#include "dialects/Rt/Targets/Targets.h"
#include "dialects/Train/Train.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

ArrayRef<const Target *> Target::all() {
  static const Target *const targets[] = {&cpuTarget(), &cudaTarget()};
  return targets;
}

const Target *Target::find(StringRef name) {
  auto found = llvm::find_if(all(), [&](const Target *each) { return each->getName() == name; });
  return found == all().end() ? nullptr : *found;
}

const Target &Target::of(Operation *op) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  auto name = module ? module->getAttrOfType<StringAttr>(RtDialect::kTarget) : StringAttr();
  const Target *named = name ? find(name.getValue()) : nullptr; // verified by the dialect
  return named ? *named : *all().front();
}

CallArgument Target::tokenRows(int64_t full, Value first, int64_t rows) const {
  if (!first)
    return full;
  return CallArgument(holder("TokenRows") + "{{" + std::to_string(full) + ", " + number().str() +
                          ", " + std::to_string(rows) + "}",
                      {first});
}

CallArgument Target::indices(Value first, int64_t count) const {
  if (!first)
    return "Indices{{0, " + std::to_string(count) + "}";
  return CallArgument(
      holder("Indices") + "{{" + number().str() + ", " + std::to_string(count) + "}", {first});
}

CallArgument Target::dropout(const APFloat &ratio, const std::string &id, Value key) const {
  return CallArgument(
      "{{" + doubleLiteral(ratio.convertToDouble()) + ", " + id + ", " + number().str() + "}", key);
}

CallArgument Target::firstElement(Value micro, ArrayRef<int64_t> full, Value first) const {
  int64_t elements = 1;
  for (int64_t size : full)
    elements *= size;
  SmallVector<Value> values{micro};
  if (first)
    values.push_back(first);
  return CallArgument(elementNumber(elements, bool(first)), values);
}

CallArgument Target::hyper(StringRef field, FloatAttr value) const {
  if (value)
    return doubleLiteral(value.getValueAsDouble());
  return hyperparameter(field);
}

ClassifierSizes ClassifierSizes::of(Operation *op) {
  auto typeOf = [](Value value) { return cast<RankedTensorType>(value.getType()); };
  RankedTensorType w = typeOf(op->getOperand(1));
  auto rows = op->getAttrOfType<IntegerAttr>(RtDialect::kRows);
  ClassifierSizes sizes;
  sizes.tokens = std::max<int64_t>(typeOf(op->getOperand(2)).getNumElements(), 1);
  sizes.vocabulary = w.getDimSize(0);
  sizes.width = w.getDimSize(1);
  sizes.xElement = typeOf(op->getOperand(0)).getElementType();
  sizes.wElement = w.getElementType();
  if (op->getNumResults() > 2)
    sizes.gradientElement = typeOf(op->getResult(2)).getElementType();
  if (auto read = op->getOperand(1).getDefiningOp<train::ReadOp>())
    if (Operation *symbol =
            SymbolTable::lookupNearestSymbolFrom(op, read.getSymbolAttr().getAttr()))
      if (auto padded = symbol->getAttrOfType<IntegerAttr>(RtDialect::kPaddedRows))
        sizes.padded = padded.getInt();
  if (rows)
    sizes.rows = std::min(rows.getInt(), sizes.tokens);
  return sizes;
}

ClassifierWork rt::chooseClassifierGradient(const ClassifierSizes &sizes,
                                            std::array<int64_t, 2> block, int64_t floatsPerToken,
                                            bool mayBeOne) {
  int64_t &tokens = block[0];
  bool sumsUp = !sizes.gradientElement.isF32() && tokens < sizes.tokens;
  int64_t sums = sumsUp ? sizes.inMemory() * sizes.width : 0;
  if (mayBeOne && !sizes.rows && (sizes.tokens - tokens) * floatsPerToken <= sums)
    tokens = sizes.tokens, sums = 0;
  return {block, floatsPerToken, sums};
}
