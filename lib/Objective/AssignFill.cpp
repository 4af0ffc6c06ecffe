//===- AssignFill.cpp - how parameters are filled when no file gives their value
//--------------------===//

#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "partita/Objective/Passes.h"

namespace partita {
#define GEN_PASS_DEF_ASSIGNFILLPASS
#include "partita/Objective/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// Is the value the scale of a normalization: the second operand of a norm, or (before
/// raising) a vector that is multiplied?
bool isScale(Value value) {
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (isa<tx::LayerNormOp, tx::RmsNormOp>(user) && use.getOperandNumber() == 1)
      return true;
    if (isa<tx::MulOp>(user))
      return true;
    if (isa<tx::BroadcastOp, tx::ReshapeOp>(user) && isScale(user->getResult(0)))
      return true;
  }
  return false;
}

struct AssignFill : partita::impl::AssignFillPassBase<AssignFill> {
  using AssignFillPassBase::AssignFillPassBase;

  void runOnOperation() override {
    llvm::DenseMap<StringAttr, bool> scales;
    getOperation().walk([&](train::ReadOp read) {
      scales[read.getSymbolAttr().getAttr()] |= isScale(read.getResult());
    });
    for (auto parameter : getOperation().getOps<train::ParameterOp>()) {
      if (parameter.getFill())
        continue;
      bool vector = cast<RankedTensorType>(parameter.getType()).getRank() < 2;
      bool scale = vector && scales.lookup(parameter.getSymNameAttr());
      parameter.setFillAttr(
          train::FillAttr::get(&getContext(), scale ? 1.0 : 0.0, vector ? 0.0 : double(deviation)));
    }
  }
};

} // namespace
