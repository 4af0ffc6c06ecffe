//===- FuseAddends.cpp - fuses an addition into the matmul before it --------------------------===//
//
// Handles residuals, and cotangents of values that several matmuls use. The last addition comes
// first: a residual's sum is the addend of the next one, which counts as arithmetic after it until
// it is fused.

#include "dialects/Rt/Rt.h"
#include "lib/Fuse/Matmuls.h"
#include "partita/Fuse/Passes.h"

namespace partita {
#define GEN_PASS_DEF_FUSEADDENDSPASS
#include "partita/Fuse/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// One of the two operands of `add`, a matmul with or without a bias.
struct Term {
  Value value;
  tx::AddOp bias;      ///< null if there is none
  BiasedMatmul biased; ///< has no row if there is no bias

  /// Has no matmul if the operand is none, or has other uses.
  Term(Value operand, tx::AddOp add) : value(unshaped(operand)) {
    Operation *op = value.getDefiningOp();
    if (!op || op->getBlock() != add->getBlock() || usersOf(value).size() != 1)
      return;
    bias = dyn_cast<tx::AddOp>(op);
    if (bias)
      biased = BiasedMatmul::of(bias);
    else if (isMatmul(op))
      biased.matmul = op;
    if (biased.matmul && biased.matmul->getBlock() != add->getBlock())
      biased = {};
  }
};

/// Returns the last definition of the values after the matmul, or the matmul.
Operation *placeBehind(Operation *matmul, ArrayRef<Value> values) {
  Operation *last = matmul;
  for (Value value : values)
    if (Operation *definer = value ? value.getDefiningOp() : nullptr;
        definer && definer->getBlock() == last->getBlock() && last->isBeforeInBlock(definer))
      last = definer;
  return last->getNextNode();
}

/// Fuses the addition. `old` collects ops that lose their users, users first.
bool fuse(tx::AddOp add, Value operand, Value addend, SmallVectorImpl<Operation *> &old) {
  Term term(operand, add);
  Operation *matmul = term.biased.matmul;
  // A broadcast costs nothing in an elementwise loop, so biases, for one, are not fused here.
  if (!matmul || !term.biased.hasType(term.value.getType()) ||
      unshaped(addend).getDefiningOp<tx::BroadcastOp>() ||
      isFollowedByArithmetic(add.getResult()) ||
      llvm::is_contained(matmul->getOperands(), addend) ||
      !sameElements(matmul, {term.value, addend, term.biased.row ? term.biased.row : addend}))
    return false;
  OpBuilder builder(placeBehind(matmul, {addend, term.biased.row}));
  Location loc = builder.getFusedLoc({matmul->getLoc(), add.getLoc()});
  Type type = term.value.getType();
  if (addend.getType() != type)
    addend = tx::ReshapeOp::create(builder, add.getLoc(), type, addend);
  Value made = term.bias ? term.biased.create(builder, loc, type) : term.value;
  auto sum = tx::AddOp::create(builder, loc, TypeRange{type}, ValueRange{addend, made});
  Value result =
      fuseMatmul(builder, loc, {made.getDefiningOp(), sum}, {sum->getResult(0)}).getResult(0);
  if (result.getType() != add.getType())
    result = tx::ReshapeOp::create(builder, add.getLoc(), add.getType(), result);
  add.getResult().replaceAllUsesWith(result);
  for (Value value = operand; value != term.value; value = value.getDefiningOp()->getOperand(0))
    old.push_back(value.getDefiningOp());
  if (term.bias)
    llvm::append_values(old, term.bias, term.bias.getA().getDefiningOp(),
                        term.bias.getB().getDefiningOp(), made.getDefiningOp());
  else
    old.push_back(matmul);
  sum.erase();
  add.erase();
  return true;
}

struct FuseAddends : partita::impl::FuseAddendsPassBase<FuseAddends> {
  void runOnOperation() override {
    if (!rt::Target::of(getOperation()).fusesMatmuls())
      return;
    SmallVector<tx::AddOp> adds;
    getOperation().walk([&](tx::AddOp add) {
      if (!tx::isFusedKernel(add->getParentOp()))
        adds.push_back(add);
    });
    SmallVector<Operation *> old; // biases' additions, which are among `adds`
    for (tx::AddOp add : llvm::reverse(adds))
      fused += fuse(add, add.getB(), add.getA(), old) || fuse(add, add.getA(), add.getB(), old);
    std::reverse(old.begin(), old.end());
    eraseUnused(old);
  }
};

} // namespace
