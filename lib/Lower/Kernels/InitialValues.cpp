//===- InitialValues.cpp - what @init writes --------------------------------------------------===//
//
// A state is filled with its value; a parameter, and its master, by the runtime, which knows the
// run's --init. The numbers and the place in the model's file stand in the call.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Offload/Offload.h"
#include "dialects/Train/Tensors.h"
#include "partita/Lower/Lowering.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

namespace {

struct InitialValue : KernelInterface::ExternalModel<InitialValue, train::InitialValueOp> {
  Space resultSpace(Operation *op, unsigned) const {
    Operation *symbol =
        SymbolTable::lookupNearestSymbolFrom(op, cast<train::InitialValueOp>(op).getSymbolAttr());
    return symbol && offload::livesOnHost(symbol) ? Space::Pinned : Space::Arena;
  }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto name = cast<train::InitialValueOp>(op).getSymbolAttr();
    Operation *symbol = SymbolTable::lookupNearestSymbolFrom(op, name);
    auto state = dyn_cast<train::StateOp>(symbol);
    if (state && !state.isMaster()) {
      l.create<FillOp>(l.result(0), state.getValue(), l.elements(op->getResult(0)));
      return success();
    }
    if (!state)
      return lowerFilling<rt::InitialValueOp>(l, cast<train::ParameterOp>(symbol),
                                              l.shared.parameterIndex.lookup(name.getValue()));
    auto parameter =
        SymbolTable::lookupNearestSymbolFrom<train::ParameterOp>(op, state.getOfAttr());
    if (!parameter)
      return state.emitOpError() << "belongs to " << state.getOfAttr()
                                 << ", which is not a parameter";
    return lowerFilling<InitialMasterOp>(l, parameter, l.shared.stateIndex.lookup(name.getValue()));
  }

private:
  template <typename Call>
  static LogicalResult lowerFilling(Lowering &l, train::ParameterOp parameter, int64_t index) {
    if (Type element = l.type(l.op->getResult(0)).getElementType(); !isa<FloatType>(element))
      return parameter.emitOpError() << "is of type " << l.op->getResult(0).getType()
                                     << "; the runtime keeps parameters in floats";
    train::FillAttr fill = parameter.getFillAttr();
    if (!fill)
      return parameter.emitOpError() << "has no `fill` that says how to make a value from a seed; "
                                        "run assign-fill first";
    train::InitialAttr initial = parameter.getInitialAttr();
    if (auto type = cast<RankedTensorType>(parameter.getType());
        initial && train::isStoredTransposed(parameter) && type.getRank() != 2)
      return parameter.emitOpError() << "is stored transposed, but is not a matrix: " << type;
    Builder &b = l.builder;
    l.create<Call>(l.result(0), index, fill.getMeanValue(), fill.getStdValue(),
                   initial ? initial.getFile() : StringAttr(),
                   initial ? b.getI64IntegerAttr(static_cast<int64_t>(initial.getOffset()))
                           : IntegerAttr(),
                   initial ? TypeAttr::get(initial.getElement()) : TypeAttr(),
                   initial && initial.getVarints()
                       ? b.getI64IntegerAttr(static_cast<int64_t>(initial.getBytes()))
                       : IntegerAttr(),
                   /*transposed=*/initial && train::isStoredTransposed(parameter));
    return success();
  }
};

} // namespace

void rt::attachInitialValues(MLIRContext *context) {
  train::InitialValueOp::attachInterface<InitialValue>(*context);
}
