//===- States.cpp - states that are no parameter's --------------------------------------------===//

#include "lib/Amp/States.h"
#include "dialects/Train/Train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace partita;

void amp::makeState(ModuleOp module, StringRef name, RankedTensorType type, double value) {
  OpBuilder builder(module.getBody(), module.getBody()->begin());
  auto state = train::StateOp::create(builder, module.getLoc(), name, type, APFloat(value),
                                      FlatSymbolRefAttr(), StringAttr());
  auto init = train::lookup<func::FuncOp>(module, train::EntryPoint::Init);
  if (!init)
    return;
  builder.setInsertionPoint(init.getBody().front().getTerminator());
  auto symbol = FlatSymbolRefAttr::get(state.getSymNameAttr());
  auto first = train::InitialValueOp::create(builder, module.getLoc(), type, symbol);
  train::WriteOp::create(builder, module.getLoc(), state.getSymName(), first);
}

LogicalResult amp::checkStateNames(ModuleOp module, ArrayRef<StringRef> names, StringRef what,
                                   StringRef without) {
  for (auto parameter : module.getOps<train::ParameterOp>())
    for (StringRef state : names)
      if (parameter.getSymName() == state || parameter.getModelName() == state)
        return parameter.emitError()
               << "parameter '" << state << "' is called like a state of " << what
               << ": rename it in the model's file, or train " << without;
  return success();
}
