//===- AssignFill.cpp - fills parameters for which no file has values -------------------------===//

#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "lib/Init/ResidualMatmuls.h"
#include "partita/Init/Passes.h"
#include <cmath>

namespace partita {
#define GEN_PASS_DEF_ASSIGNFILLPASS
#include "partita/Init/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// Returns the number of dimensions larger than one.
int64_t extents(Value value) {
  return llvm::count_if(cast<RankedTensorType>(value.getType()).getShape(),
                        [](int64_t size) { return size != 1; });
}

bool isConstant(Value value) {
  while (auto broadcast = value.getDefiningOp<tx::BroadcastOp>())
    value = broadcast.getX();
  return value.getDefiningOp<tx::ConstantOp>() != nullptr;
}

/// Returns true if the value reaches a use of this kind, unchanged except for its shape, type and
/// constant factors. `repeated`: it has been broadcast on the way.
bool endsIn(Value value, bool repeated, function_ref<bool(OpOperand &, bool)> kind) {
  return llvm::any_of(value.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    if (kind(use, repeated))
      return true;
    bool constantFactor =
        isa<tx::MulOp>(user) && isConstant(user->getOperand(1 - use.getOperandNumber()));
    if (!isa<tx::BroadcastOp, tx::ReshapeOp, tx::CastOp>(user) && !constantFactor)
      return false;
    return endsIn(user->getResult(0), repeated || isa<tx::BroadcastOp>(user), kind);
  });
}

/// Returns true for the scale of a normalization: the second operand of a norm, or the factor of an
/// elementwise product if it is a vector or, broadcast over samples, a vector per head. (A matrix
/// as large as the other factor is one that a weight norm scales.)
bool isScale(Value read) {
  bool vector = extents(read) < 2;
  return endsIn(read, false, [&](OpOperand &use, bool repeated) {
    Operation *user = use.getOwner();
    if (isa<tx::LayerNormOp, tx::RmsNormOp>(user))
      return use.getOperandNumber() == 1;
    return isa<tx::MulOp>(user) && (vector || repeated) &&
           !isConstant(user->getOperand(1 - use.getOperandNumber()));
  });
}

/// Returns true for values with fewer than two dimensions, and for vectors with further dimensions
/// of size one that are added. Other values with several dimensions (the token before an image's
/// patches) are tables with one row.
bool isBias(Value read) {
  return cast<RankedTensorType>(read.getType()).getRank() < 2 ||
         (extents(read) < 2 &&
          endsIn(read, false, [](OpOperand &use, bool) { return isa<tx::AddOp>(use.getOwner()); }));
}

struct AssignFill : partita::impl::AssignFillPassBase<AssignFill> {
  using AssignFillPassBase::AssignFillPassBase;

  void runOnOperation() override {
    if (!(deviation >= 0 && std::isfinite(deviation))) {
      getOperation().emitError() << "std=" << deviation.getValue()
                                 << ", expected a number from 0 on";
      return signalPassFailure();
    }
    llvm::DenseSet<StringAttr> scales, biases;
    getOperation().walk([&](train::ReadOp read) {
      StringAttr symbol = read.getSymbolAttr().getAttr();
      if (isScale(read.getResult()))
        scales.insert(symbol);
      if (isBias(read.getResult()))
        biases.insert(symbol);
    });
    llvm::DenseMap<StringAttr, unsigned> residual;
    auto forward = train::lookup<func::FuncOp>(getOperation(), train::EntryPoint::Forward);
    if (residualScale && forward && forward.getBody().hasOneBlock())
      residual = init::countResidualMatmuls(forward);
    for (auto parameter : getOperation().getOps<train::ParameterOp>()) {
      if (parameter.getFill())
        continue;
      StringAttr symbol = parameter.getSymNameAttr();
      bool scale = scales.contains(symbol);
      bool constant = scale || biases.contains(symbol) ||
                      cast<RankedTensorType>(parameter.getType()).getRank() < 2;
      ++filled;
      double matmuls = std::max(1u, residual.lookup(symbol));
      parameter.setFillAttr(
          train::FillAttr::get(&getContext(), scale ? 1.0 : 0.0,
                               constant ? 0.0 : double(deviation) / std::sqrt(matmuls)));
    }
  }
};

} // namespace
