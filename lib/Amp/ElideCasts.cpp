//===- ElideCasts.cpp - lets ops read and store 16 bits directly ------------------------------===//

#include "dialects/Tx/Rounding.h"
#include "dialects/Tx/Tx.h"
#include "lib/Amp/StoredTypes.h"
#include "partita/Amp/Passes.h"

namespace partita {
#define GEN_PASS_DEF_ELIDECASTSPASS
#include "partita/Amp/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// Returns the 16-bit value that `value` is widened from, or null.
Value widenedFrom(Value value) {
  auto cast = value.getDefiningOp<tx::CastOp>();
  bool widens = cast && !tx::isOwnRounding(cast) && amp::isWide(value.getType()) &&
                amp::isNarrow(cast.getX().getType());
  return widens ? cast.getX() : Value();
}

/// Returns the only use of a value, if it rounds it to `type`, or null.
tx::CastOp roundedTo(Value value, Type type) {
  auto cast = value.hasOneUse() ? dyn_cast<tx::CastOp>(*value.getUsers().begin()) : tx::CastOp();
  return cast && cast.getType() == type && !tx::isOwnRounding(cast) ? cast : tx::CastOp();
}

struct ElideCasts : partita::impl::ElideCastsPassBase<ElideCasts> {
  void runOnOperation() override {
    SmallVector<PrecisionInterface> ops;
    getOperation().walk([&](PrecisionInterface op) {
      if (!isa<tx::CastOp>(op))
        ops.push_back(op);
    });
    for (PrecisionInterface op : ops)
      if (op.getPrecision() == Precision::Follow || op.getPrecision() == Precision::Exact)
        elided += elide(op);
  }

private:
  static bool elide(PrecisionInterface op) {
    bool any = false, scalar = isa<ScalarInterface>(op.getOperation());
    SmallVector<Value> operands(op->getOperands());
    for (auto [index, operand] : llvm::enumerate(operands)) {
      if (Value narrow = widenedFrom(operand)) {
        operand = narrow;
        any = true;
      } else if (amp::isWide(operand.getType()) && op.getPrecision() == Precision::Follow &&
                 !(scalar && amp::isSplat(operand)) && !op.mayStayWide(index)) {
        return false;
      }
    }
    if (!any)
      return false;
    std::optional<SmallVector<Type>> types = amp::storedTypes(op, operands);
    if (!types)
      return false;
    SmallVector<tx::CastOp> casts;
    for (auto [result, type] : llvm::zip(op->getResults(), *types)) {
      if (result.getType() == type || result.use_empty())
        continue;
      casts.push_back(roundedTo(result, type));
      if (!casts.back())
        return false;
    }
    op->setOperands(operands);
    for (auto [result, type] : llvm::zip(op->getResults(), *types))
      result.setType(type);
    for (tx::CastOp cast : casts) {
      cast.getResult().replaceAllUsesWith(cast.getX());
      cast.erase();
    }
    return true;
  }
};

} // namespace
