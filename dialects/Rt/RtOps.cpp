//===- RtOps.cpp - see RtOps.td ---------------------------------------------------------------===//

#include "dialects/Rt/Rt.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

#define GET_OP_CLASSES
#include "dialects/Rt/RtOps.cpp.inc"

void ForOp::build(OpBuilder &builder, OperationState &state, int64_t count, int64_t step) {
  state.addAttribute(getCountAttrName(state.name), builder.getI64IntegerAttr(count));
  state.addAttribute(getStepAttrName(state.name), builder.getI64IntegerAttr(step));
  Region *body = state.addRegion();
  body->emplaceBlock().addArgument(builder.getI64Type(), state.location);
  ensureTerminator(*body, builder, state.location);
}

//===------------------------------------------------------------------------------------------===//
// Generated elementwise kernels
//===------------------------------------------------------------------------------------------===//

LogicalResult KernelOp::verify() {
  if (getLoops() < 1 || getLoops() > partita_rt::kMaxDims)
    return emitOpError() << "has " << getLoops() << " loops, expected 1 to "
                         << partita_rt::kMaxDims;
  size_t outputs = getOutputs().size(), inputs = getInputs().size();
  if (outputs == 0 || outputs != getOutputTypes().size() || outputs != getExpressions().size())
    return emitOpError() << "has " << outputs << " outputs, " << getOutputTypes().size()
                         << " types and " << getExpressions().size()
                         << " expressions, expected one of each for an output";
  if (inputs != getInputTypes().size())
    return emitOpError() << "has " << inputs << " inputs and " << getInputTypes().size()
                         << " types";
  if (getSteps().size() != outputs + inputs)
    return emitOpError() << "has " << getSteps().size() << " steps, expected one for each of "
                         << outputs + inputs << " outputs and inputs";
  return success();
}

//===------------------------------------------------------------------------------------------===//
// Layers
//===------------------------------------------------------------------------------------------===//

ColumnAttr rt::columnOf(Operation *op, StringRef attribute) {
  auto columns = op->getAttrOfType<DictionaryAttr>(RtDialect::kColumns);
  return columns ? dyn_cast_or_null<ColumnAttr>(columns.get(attribute)) : ColumnAttr();
}

std::optional<std::pair<int64_t, int64_t>> rt::linearColumn(Attribute values) {
  auto numbers = dyn_cast<DenseI64ArrayAttr>(values);
  if (!numbers || numbers.size() < 2)
    return std::nullopt;
  int64_t first = numbers[0], stride = numbers[1] - first;
  for (int64_t row = 2; row < numbers.size(); ++row)
    if (numbers[row] - numbers[row - 1] != stride)
      return std::nullopt;
  return std::pair(first, stride);
}

bool rt::hasTable(LayerOp layer) {
  return llvm::any_of(layer.getValues(), [](Attribute column) { return !linearColumn(column); });
}

/// Returns a column's numbers or strings.
static Attribute valuesOf(LayerOp layer, StringRef column) {
  for (auto [name, values] :
       llvm::zip(layer.getColumns().getAsRange<StringAttr>(), layer.getValues()))
    if (name.getValue() == column)
      return values;
  return {};
}

std::string rt::columnText(Operation *op, StringRef attribute) {
  ColumnAttr column = columnOf(op, attribute);
  if (!column)
    return "";
  auto layer = op->getParentOfType<LayerOp>();
  Attribute values = layer ? valuesOf(layer, column.getName()) : Attribute();
  if (auto linear = values ? linearColumn(values) : std::nullopt) {
    auto [first, stride] = *linear;
    first += column.getPlus();
    std::string term = std::to_string(std::abs(stride)) == "1"
                           ? "layer"
                           : "layer * " + std::to_string(std::abs(stride));
    return first == 0 && stride > 0 ? term
                                    : std::to_string(first) + (stride < 0 ? " - " : " + ") + term;
  }
  return "at." + column.getName().str() +
         (column.getPlus() ? " + " + std::to_string(column.getPlus()) : "");
}

bool rt::isPointer(Operation *op) {
  return op->getNumResults() == 1 && isa<BufferType>(op->getResult(0).getType());
}

StringAttr rt::pendingName(Operation *op) {
  auto call = dyn_cast<PendingInterface>(op);
  return call && !call.getPendingAttr().empty() ? call.getPendingAttr() : StringAttr();
}

/// Checks that the columns that an op of a layer's function reads exist and have the attributes'
/// types.
static LogicalResult verifyColumns(Operation *op, LayerOp layer) {
  Attribute attribute = op->getAttr(RtDialect::kColumns);
  if (!attribute)
    return success();
  auto columns = dyn_cast<DictionaryAttr>(attribute);
  auto data = dyn_cast<DataInterface>(op);
  if (!columns || !data)
    return op->emitOpError() << "has no attribute that could be a column";
  for (NamedAttribute entry : columns) {
    auto column = dyn_cast<ColumnAttr>(entry.getValue());
    if (!column || !llvm::is_contained(data.getDataAttributes(), entry.getName().getValue()))
      return op->emitOpError() << "'" << entry.getName().getValue() << "' cannot be a column";
    const auto *found = llvm::find_if(layer.getColumns().getValue(), [&](Attribute name) {
      return cast<StringAttr>(name).getValue() == column.getName();
    });
    if (found == layer.getColumns().end())
      return op->emitOpError() << "reads column '" << column.getName() << "', which the table of @"
                               << layer.getSymName() << " does not have";
    bool isText = isa<ArrayAttr>(layer.getValues()[found - layer.getColumns().begin()]);
    Attribute own = op->getAttr(entry.getName());
    if (!own || isa<StringAttr>(own) != isText || (isText && column.getPlus()))
      return op->emitOpError() << "'" << entry.getName().getValue() << "' and column '"
                               << column.getName() << "' are of different types";
  }
  return success();
}

LogicalResult LayerOp::verifyRegions() {
  if (getColumns().size() != getValues().size())
    return emitOpError() << "has " << getColumns().size() << " columns, values of "
                         << getValues().size();
  llvm::StringSet<> names;
  for (auto [name, values] : llvm::zip(getColumns().getAsRange<StringAttr>(), getValues())) {
    auto numbers = dyn_cast<DenseI64ArrayAttr>(values);
    auto texts = dyn_cast<ArrayAttr>(values);
    if (!numbers && !(texts && llvm::all_of(texts, llvm::IsaPred<StringAttr>)))
      return emitOpError() << "column '" << name.getValue() << "' has neither numbers nor strings";
    size_t count = numbers ? static_cast<size_t>(numbers.size()) : texts.size();
    if (count != getLabels().size())
      return emitOpError() << "column '" << name.getValue() << "' has " << count << " values for "
                           << getLabels().size() << " rows";
    if (!names.insert(name.getValue()).second)
      return emitOpError() << "has two columns '" << name.getValue() << "'";
  }
  for (BlockArgument argument : getBody().getArguments())
    if (!isa<BufferType>(argument.getType()))
      return emitOpError() << "takes buffers, not " << argument.getType();
  WalkResult result =
      getBody().walk([&](Operation *op) -> WalkResult { return verifyColumns(op, *this); });
  return failure(result.wasInterrupted());
}

LogicalResult OneBitAllReduceOp::verify() {
  if (getCounts().empty() || getBuffers().size() != 3 * getCounts().size())
    return emitOpError() << "has " << getBuffers().size() << " buffers and " << getCounts().size()
                         << " numbers of elements, expected three buffers for each";
  if (getFullSizes().size() != getCounts().size() || getAxes().size() != getCounts().size())
    return emitOpError() << "has " << getCounts().size() << " values, " << getFullSizes().size()
                         << " full sizes and " << getAxes().size()
                         << " axes, expected one of each for a value";
  for (auto [full, axis] : llvm::zip(getFullSizes(), getAxes()))
    if (full > 0 ? axis < 0 : full != 0 || axis != -1)
      return emitOpError() << "has a value of " << full << " elements along axis " << axis
                           << ", expected a size and an axis, or 0 and -1";
  return success();
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto layer = symbols.lookupNearestSymbolFrom<LayerOp>(*this, getCalleeAttr());
  if (!layer)
    return emitOpError() << "calls " << getCalleeAttr() << ", which is not a layer's function";
  auto rows = static_cast<int64_t>(layer.getLabels().size());
  int64_t row = getRow(), times = getTimes();
  if (row < 0 || times < 1 || row >= rows || times > rows - row)
    return emitOpError() << "takes " << times << " rows from " << row << " on of the " << rows
                         << " of " << getCalleeAttr();
  if (getPendings().size() != layer.getPendings().size() ||
      getCopies().size() != layer.getCopies().size())
    return emitOpError() << "names " << getPendings().size() << " collectives and "
                         << getCopies().size() << " copies, " << getCalleeAttr() << " has "
                         << layer.getPendings().size() << " and " << layer.getCopies().size();
  if (getBuffers().getTypes() != layer.getBody().getArgumentTypes())
    return emitOpError() << "gives other buffers than " << getCalleeAttr() << " takes";
  return success();
}
