//===- TrainTables.cpp - checks what import and analyses record -----------------------------------===//

#include "dialects/Train/PassKinds.h"
#include "dialects/Train/Tensors.h"
#include <limits>
#include <set>

using namespace mlir;
using namespace partita;
using namespace partita::train;
using EmitError = llvm::function_ref<InFlightDiagnostic()>;

LogicalResult FileAttr::verify(EmitError emitError, StringRef name, int64_t bytes, int64_t) {
  return bytes >= 0
             ? success()
             : LogicalResult(emitError() << "file '" << name << "' has " << bytes << " bytes");
}

LogicalResult StoredAttr::verify(EmitError emitError, StringRef name, bool, bool,
                                 DenseI64ArrayAttr slice, StringRef, Folded,
                                 DenseI64ArrayAttr dimensions) {
  if (slice && (slice.size() != 3 || slice[0] < 0 || slice[1] < 0 || slice[2] < 0))
    return emitError() << "tensor '" << name << "' is slice " << slice
                       << " of a parameter, expected a dimension, a begin and a size";
  if (dimensions && (dimensions.size() != 2 || dimensions[0] < 0 || dimensions[1] < dimensions[0]))
    return emitError() << "tensor '" << name << "' was made of parameters of " << dimensions
                       << " dimensions, expected a least and a largest number";
  return success();
}

LogicalResult NoteAttr::verify(EmitError emitError, StringRef, ArrayAttr tensors, bool, bool) {
  if (tensors && !llvm::all_of(tensors, llvm::IsaPred<StringAttr>))
    return emitError() << "a note is about " << tensors << ", expected names of tensors";
  return success();
}

/// Two costs can be added, and those of the spans of sixty layers.
static constexpr int64_t kMostCost = int64_t(1) << 62, kMostSpanCost = int64_t(1) << 56;

static bool areCosts(int64_t one, int64_t other) {
  return one >= 0 && other >= 0 && one < kMostCost && other < kMostCost;
}

LogicalResult WorkAttr::verify(EmitError emitError, int64_t place, FloatAttr matmuls,
                               FloatAttr elementwise, FloatAttr backward, int64_t parameters) {
  if (!LayerAttr::isPlace(place))
    return emitError() << "work of layer " << place << ", expected a layer from 0 to "
                       << LayerAttr::kMostLayers - 1 << ", or " << LayerAttr::kBefore << ", "
                       << LayerAttr::kAfter << ", " << LayerAttr::kOnce
                       << " for what is before, after, once per step";
  if (parameters < 0)
    return emitError() << "layer " << place << " has " << parameters << " elements of parameters";
  for (FloatAttr each : {matmuls, elementwise, backward})
    if (!each.getType().isF64() || !(each.getValueAsDouble() >= 0) || each.getValue().isInfinity())
      return emitError() << "layer " << place << " has " << each
                         << " FLOPs, expected an f64 from 0";
  return success();
}

LogicalResult PassCostAttr::verify(EmitError emitError, PassAttr pass, int64_t cost,
                                   int64_t reduced, int64_t beside) {
  if (!areCosts(cost, beside) || reduced < 0 || beside > cost)
    return emitError() << "pass " << pass.getName().text() << " costs " << cost << ", " << beside
                       << " of it beside " << reduced << " bytes";
  return success();
}

LogicalResult CostsAttr::verify(EmitError emitError, OrderAttr order, ArrayAttr passes) {
  if (!llvm::all_of(passes, llvm::IsaPred<PassCostAttr>))
    return emitError() << "the costs of passes are " << passes
                       << ", expected a list of #train.pass_cost";
  for (Slot slot : order.getSlots())
    if (llvm::count_if(passes.getAsRange<PassCostAttr>(), [&](PassCostAttr each) {
          return each.getPass().getName() == slot.pass();
        }) != 1)
      return emitError() << "pass " << slot.text() << " has no cost, or several";
  return success();
}

LogicalResult SpanAttr::verify(EmitError emitError, int64_t first, int64_t last,
                               DenseI64ArrayAttr costs, bool) {
  if (first < 0 || first >= LayerAttr::kMostLayers || last < first || last > first + 1)
    return emitError() << "a span of layers " << first << " to " << last
                       << ", expected one layer or two, below " << LayerAttr::kMostLayers;
  if (costs.size() != static_cast<int64_t>(kPassKindCount) ||
      llvm::any_of(costs.asArrayRef(),
                   [](int64_t cost) { return cost < 0 || cost >= kMostSpanCost; }))
    return emitError() << "layers " << first << " to " << last << " cost [" << costs.asArrayRef()
                       << "], expected 0 to " << kMostSpanCost - 1 << " for each kind of pass";
  return success();
}

LogicalResult ScheduleAttr::verify(EmitError emitError, StringRef name, ArrayAttr orders) {
  if (orders.empty() || !llvm::all_of(orders, llvm::IsaPred<OrderAttr>))
    return emitError() << "schedule '" << name << "' has " << orders
                       << ", expected a #train.order for each stage";
  return success();
}

//===------------------------------------------------------------------------------------------===//
// Tensors of the model's file
//===------------------------------------------------------------------------------------------===//

ArrayAttr train::toAttribute(ArrayRef<StoredTensor> tensors, MLIRContext *context) {
  auto integers = [&](ArrayRef<int64_t> list) {
    return list.empty() ? DenseI64ArrayAttr() : DenseI64ArrayAttr::get(context, list);
  };
  return ArrayAttr::get(
      context, llvm::map_to_vector(tensors, [&](const StoredTensor &tensor) -> Attribute {
        return StoredAttr::get(context, tensor.name, tensor.transposed, tensor.reshaped,
                               integers(tensor.slice), tensor.origin, tensor.folded,
                               integers(tensor.dimensions));
      }));
}

SmallVector<StoredTensor> train::tensorsOf(ParameterOp parameter) {
  auto all = parameter->getAttrOfType<ArrayAttr>(TrainDialect::kTensors);
  if (!all)
    return {StoredTensor{parameter.getModelName().str()}};
  return llvm::map_to_vector(all.getAsRange<StoredAttr>(), [](StoredAttr each) {
    StoredTensor tensor{each.getName().str(),   each.getTransposed(), each.getReshaped(), {},
                        each.getOrigin().str(), each.getFolded()};
    if (DenseI64ArrayAttr slice = each.getSlice())
      tensor.slice.assign(slice.asArrayRef().begin(), slice.asArrayRef().end());
    if (DenseI64ArrayAttr dimensions = each.getDimensions())
      tensor.dimensions.assign(dimensions.asArrayRef().begin(), dimensions.asArrayRef().end());
    return tensor;
  });
}

//===------------------------------------------------------------------------------------------===//
// Guesses of import
//===------------------------------------------------------------------------------------------===//

SmallVector<NoteAttr> train::notesOf(ModuleOp module) {
  auto notes = module->getAttrOfType<ArrayAttr>(TrainDialect::kNotes);
  return notes ? llvm::to_vector(notes.getAsRange<NoteAttr>()) : SmallVector<NoteAttr>();
}

void train::setNotes(ModuleOp module, ArrayRef<NoteAttr> notes) {
  if (notes.empty())
    module->removeAttr(TrainDialect::kNotes);
  else
    module->setAttr(
        TrainDialect::kNotes,
        ArrayAttr::get(module.getContext(), SmallVector<Attribute>(notes.begin(), notes.end())));
}

SmallVector<FileAttr> train::filesOf(ModuleOp module) {
  auto files = module->getAttrOfType<ArrayAttr>(TrainDialect::kFiles);
  return files ? llvm::to_vector(files.getAsRange<FileAttr>()) : SmallVector<FileAttr>();
}

//===------------------------------------------------------------------------------------------===//
// Checks by attribute
//===------------------------------------------------------------------------------------------===//

template <typename Row>
static LogicalResult verifyRows(Operation *op, NamedAttribute attribute, StringRef mnemonic) {
  auto rows = dyn_cast<ArrayAttr>(attribute.getValue());
  if (rows && !rows.empty() && llvm::all_of(rows, llvm::IsaPred<Row>))
    return success();
  return op->emitError() << attribute.getName() << " is " << attribute.getValue()
                         << ", expected a list of #train." << mnemonic;
}

int64_t train::layersOf(Operation *op) {
  int64_t layers = 0;
  if (auto rows = op->getAttrOfType<ArrayAttr>(TrainDialect::kWork))
    for (Attribute row : rows)
      if (auto work = dyn_cast<WorkAttr>(row))
        layers = std::max(layers, work.getPlace() + 1);
  return layers;
}

/// Checks that each layer has a row, and each place at most one.
static LogicalResult verifyWork(Operation *op, NamedAttribute attribute) {
  auto rows = dyn_cast<ArrayAttr>(attribute.getValue());
  if (!rows || !rows.empty()) // a program may have no work
    if (failed(verifyRows<WorkAttr>(op, attribute, "work")))
      return failure();
  llvm::SmallDenseSet<int64_t> places;
  for (WorkAttr row : rows.getAsRange<WorkAttr>())
    if (!places.insert(row.getPlace()).second)
      return op->emitError() << attribute.getName() << " has two rows for layer " << row.getPlace();
  int64_t parameters = 0;
  for (WorkAttr row : rows.getAsRange<WorkAttr>())
    if (__builtin_add_overflow(parameters, row.getParameters(), &parameters))
      return op->emitError() << attribute.getName() << " has more elements of parameters than "
                             << std::numeric_limits<int64_t>::max();
  int64_t layers = layersOf(op), last = layers - 1;
  for (int64_t layer = 0; layer < layers; ++layer) // at most one more than there are rows
    if (!places.contains(layer))
      return op->emitError() << attribute.getName() << " has a row for layer " << last
                             << " and none for layer " << layer;
  return success();
}

/// Checks that the rows have each span of one layer and of two once, with stages that split their
/// backward passes or without. note-costs cuts in two at least, so two layers are no span of a model
/// that has no more.
static LogicalResult verifySpansOf(Operation *op, NamedAttribute attribute, int64_t layers,
                                   bool splits) {
  std::set<std::pair<int64_t, int64_t>> seen;
  auto at = [&](int64_t first, int64_t last) {
    std::string text = first == last
                           ? "layer " + std::to_string(first)
                           : "layers " + std::to_string(first) + " to " + std::to_string(last);
    return text + (splits ? " with splits" : "");
  };
  for (auto row : cast<ArrayAttr>(attribute.getValue()).getAsRange<SpanAttr>())
    if (row.getSplits() == splits && !seen.insert({row.getFirst(), row.getLast()}).second)
      return op->emitError() << attribute.getName() << " has two spans of "
                             << at(row.getFirst(), row.getLast());
  if (splits && seen.empty()) // only some schedules split backward passes
    return success();
  for (int64_t first = 0; first < layers; ++first)
    for (int64_t last = first; last < std::min(first + 2, layers); ++last)
      if (!seen.count({first, last}) && (last == first || layers > 2))
        return op->emitError() << attribute.getName() << " has no span of " << at(first, last);
  return success();
}

static LogicalResult verifySpans(Operation *op, NamedAttribute attribute) {
  if (failed(verifyRows<SpanAttr>(op, attribute, "span")))
    return failure();
  std::optional<NamedAttribute> noted = op->getAttrDictionary().getNamed(TrainDialect::kWork);
  if (!noted)
    return op->emitError() << attribute.getName() << " has no " << TrainDialect::kWork
                           << " beside it";
  if (failed(verifyWork(op, *noted)))
    return failure();
  int64_t layers = layersOf(op), end = 0;
  for (auto row : cast<ArrayAttr>(attribute.getValue()).getAsRange<SpanAttr>())
    end = std::max(end, row.getLast() + 1);
  if (end != layers)
    return op->emitError() << attribute.getName() << " is of " << end << " layers, and "
                           << TrainDialect::kWork << " has " << layers;
  return success(succeeded(verifySpansOf(op, attribute, layers, /*splits=*/false)) &&
                 succeeded(verifySpansOf(op, attribute, layers, /*splits=*/true)));
}

static LogicalResult verifySchedule(Operation *op, NamedAttribute attribute) {
  if (!isa<ScheduleAttr>(attribute.getValue()))
    return op->emitError() << attribute.getName().strref() << " is " << attribute.getValue()
                           << ", expected a #train.schedule";
  auto program = dyn_cast<ModuleOp>(op);
  if (!program || (!op->hasAttr(kStagesAttribute) && program.getOps<ModuleOp>().empty()))
    return op->emitError() << attribute.getName().strref()
                           << " belongs on a module of stages: with " << kStagesAttribute
                           << ", or after the cut";
  return success();
}

LogicalResult train::verifyTable(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (name == TrainDialect::kTensors)
    return verifyRows<StoredAttr>(op, attribute, "stored");
  if (name == TrainDialect::kNotes)
    return verifyRows<NoteAttr>(op, attribute, "note");
  if (name == TrainDialect::kFiles)
    return verifyRows<FileAttr>(op, attribute, "file");
  if (name == TrainDialect::kWork)
    return verifyWork(op, attribute);
  if (name == TrainDialect::kSpans)
    return verifySpans(op, attribute);
  if (name == TrainDialect::kSchedule)
    return verifySchedule(op, attribute);
  if (name == TrainDialect::kCosts && !isa<CostsAttr>(attribute.getValue()))
    return op->emitError() << name << " is " << attribute.getValue() << ", expected a #train.costs";
  return success();
}
