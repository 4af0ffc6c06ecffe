//===- States.cpp - states that are no parameter's --------------------------------------------===//

#include "dialects/Train/States.h"
#include "dialects/Train/Train.h"

using namespace mlir;
using namespace partita;
using namespace partita::train;

void train::makeState(ModuleOp module, StringRef name, RankedTensorType type, double value) {
  OpBuilder builder(module.getBody(), module.getBody()->begin());
  auto state = StateOp::create(builder, module.getLoc(), name, type, APFloat(value),
                               FlatSymbolRefAttr(), StringAttr());
  Operation *init = lookup(module, EntryPoint::Init);
  if (!init)
    return;
  builder.setInsertionPoint(init->getRegion(0).front().getTerminator());
  auto symbol = FlatSymbolRefAttr::get(state.getSymNameAttr());
  auto first = InitialValueOp::create(builder, module.getLoc(), type, symbol);
  WriteOp::create(builder, module.getLoc(), state.getSymName(), first);
}

LogicalResult train::checkStateNames(ModuleOp module, ArrayRef<StringRef> names, StringRef what,
                                     StringRef without) {
  for (auto parameter : module.getOps<ParameterOp>())
    for (StringRef state : names)
      if (parameter.getSymName() == state || parameter.getModelName() == state)
        return parameter.emitError()
               << "parameter '" << state << "' is called like a state of " << what
               << ": rename it in the model's file, or train " << without;
  return success();
}
