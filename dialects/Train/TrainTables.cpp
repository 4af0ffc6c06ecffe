//===- TrainTables.cpp - checks what import and analyses record -----------------------------------===//

#include "dialects/Train/Tensors.h"

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

LogicalResult WorkAttr::verify(EmitError emitError, int64_t place, FloatAttr matmuls,
                               FloatAttr elementwise, FloatAttr backward, int64_t,
                               int64_t forwardCost, int64_t backwardCost) {
  if (forwardCost < 0 || backwardCost < 0)
    return emitError() << "layer " << place << " costs " << forwardCost << " and " << backwardCost;
  for (FloatAttr each : {matmuls, elementwise, backward})
    if (!each.getType().isF64() || !(each.getValueAsDouble() >= 0))
      return emitError() << "layer " << place << " has " << each
                         << " FLOPs, expected an f64 from 0";
  return success();
}

LogicalResult PassCostAttr::verify(EmitError emitError, PassAttr pass, int64_t cost,
                                   int64_t reduced, int64_t beside) {
  if (cost < 0 || reduced < 0 || beside < 0 || beside > cost)
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

LogicalResult SharedWorkAttr::verify(EmitError emitError, int64_t first, int64_t last,
                                     int64_t forwardCost, int64_t backwardCost) {
  if (first < 0 || last < first || forwardCost < 0 || backwardCost < 0)
    return emitError() << "layers " << first << " to " << last << " share work that costs "
                       << forwardCost << " and " << backwardCost;
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

LogicalResult train::verifyTable(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (name == TrainDialect::kTensors)
    return verifyRows<StoredAttr>(op, attribute, "stored");
  if (name == TrainDialect::kNotes)
    return verifyRows<NoteAttr>(op, attribute, "note");
  if (name == TrainDialect::kFiles)
    return verifyRows<FileAttr>(op, attribute, "file");
  if (name == TrainDialect::kWork)
    return verifyRows<WorkAttr>(op, attribute, "work");
  if (name == TrainDialect::kSharedWork)
    return verifyRows<SharedWorkAttr>(op, attribute, "shared_work");
  if (name == TrainDialect::kSchedule && !isa<ScheduleAttr>(attribute.getValue()))
    return op->emitError() << name << " is " << attribute.getValue()
                           << ", expected a #train.schedule";
  if (name == TrainDialect::kCosts && !isa<CostsAttr>(attribute.getValue()))
    return op->emitError() << name << " is " << attribute.getValue() << ", expected a #train.costs";
  return success();
}
