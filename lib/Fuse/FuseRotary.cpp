//===- FuseRotary.cpp - rotary position embedding as one kernel -------------------------------===//
//
// Matches x cos + rotate_half(x) sin, and its transpose x cos - rotate_half(x sin), as exporters
// and differentiation write them: five kernels that each read and write the full tensor. Casts in
// between are included, since the kernel computes in float and rounds once. A transpose of x before
// the pattern moves after it, where it meets the one that undoes it (heads move out of the sequence
// and back around attention).
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Par/Placement.h"
#include "dialects/Tx/Rounding.h"
#include "dialects/Tx/Tx.h"
#include "partita/Fuse/Passes.h"

namespace partita {
#define GEN_PASS_DEF_FUSEROTARYPASS
#include "partita/Fuse/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// Returns `value` without casts between floating-point types, other than the model's own.
Value withoutCasts(Value value) {
  while (auto cast = value.getDefiningOp<tx::CastOp>()) {
    if (!isa<FloatType>(getElementTypeOrSelf(cast.getX().getType())) || tx::isOwnRounding(cast))
      break;
    value = cast.getX();
  }
  return value;
}

/// Returns the op before the casts, if none of them has another use; else null.
template <typename Op> Op onlyRead(Value value) {
  while (value.hasOneUse()) {
    if (auto op = value.getDefiningOp<Op>())
      return op;
    auto cast = value.getDefiningOp<tx::CastOp>();
    if (!cast || tx::isOwnRounding(cast))
      break;
    value = cast.getX();
  }
  return {};
}

struct Rotary {
  Value x, cos, sin;
  bool interleaved = false, back = false;
};

/// Returns what a product multiplies `x` by, or null if `x` is no factor.
Value factorOf(tx::MulOp product, Value x) {
  if (withoutCasts(product.getA()) == x)
    return product.getB();
  return withoutCasts(product.getB()) == x ? product.getA() : Value();
}

/// Returns true if the kernel takes these angles for `x`: they are not rounded to 16 bits
/// (RotaryOp::verify).
bool isAngle(Value value, Value x) {
  Type element = getElementTypeOrSelf(x.getType());
  return value && (element.isF64() ? getElementTypeOrSelf(value.getType()).isF64()
                                   : getElementTypeOrSelf(value.getType()).isF32());
}

/// Matches `plain` + rotate_half(x) sin.
std::optional<Rotary> matchForth(tx::MulOp plain, tx::MulOp other) {
  for (auto [turned, sin] :
       {std::pair(other.getA(), other.getB()), std::pair(other.getB(), other.getA())})
    if (auto half = onlyRead<tx::RotateHalfOp>(turned)) {
      Value x = withoutCasts(half.getX()), cos = factorOf(plain, x);
      if (isAngle(cos, x) && isAngle(sin, x))
        return Rotary{x, cos, sin, half.getInterleaved(), false};
    }
  return std::nullopt;
}

/// Matches `plain` - rotate_half(x sin), where `half` is the rotation.
std::optional<Rotary> matchBack(tx::MulOp plain, tx::RotateHalfOp half) {
  auto product = half ? onlyRead<tx::MulOp>(half.getX()) : tx::MulOp();
  if (!product)
    return std::nullopt;
  for (Value operand : product->getOperands()) {
    Value x = withoutCasts(operand), cos = factorOf(plain, x), sin = factorOf(product, x);
    if (isAngle(cos, x) && isAngle(sin, x))
      return Rotary{x, cos, sin, half.getInterleaved(), true};
  }
  return std::nullopt;
}

std::optional<Rotary> match(tx::AddOp add) {
  for (auto [first, second] :
       {std::pair(add.getA(), add.getB()), std::pair(add.getB(), add.getA())}) {
    auto plain = onlyRead<tx::MulOp>(first);
    if (!plain)
      continue;
    std::optional<Rotary> found;
    if (auto other = onlyRead<tx::MulOp>(second))
      found = matchForth(plain, other);
    else if (auto minus = onlyRead<tx::NegOp>(second))
      found = matchBack(plain, onlyRead<tx::RotateHalfOp>(minus.getX()));
    if (found && found->x.getType() == add.getType())
      return found;
  }
  return std::nullopt;
}

/// Undoes `transpose` on `value`. The sum over ranks may still be open for x, but not for angles.
Value transposedBack(OpBuilder &builder, tx::TransposeOp transpose, Value value) {
  auto source = cast<RankedTensorType>(transpose.getX().getType());
  SmallVector<int64_t> inverse(source.getRank());
  for (auto [to, from] : llvm::enumerate(transpose.getPermutation()))
    inverse[from] = static_cast<int64_t>(to);
  par::Layout layout = par::Layout::of(source);
  layout.partial = par::Layout::of(value.getType()).partial;
  auto type = RankedTensorType::get(source.getShape(), getElementTypeOrSelf(value.getType()),
                                    layout.encoding(builder.getContext()));
  return tx::TransposeOp::create(builder, transpose.getLoc(), type, value, inverse);
}

Value build(OpBuilder &builder, Location loc, const Rotary &rotary) {
  auto op = [&](Value x, Value cos, Value sin) -> Value {
    return tx::RotaryOp::create(builder, loc, x.getType(), x, cos, sin, rotary.interleaved,
                                rotary.back);
  };
  auto transpose = rotary.x.getDefiningOp<tx::TransposeOp>();
  if (!transpose || transpose.getPermutation().back() != transpose.getType().getRank() - 1)
    return op(rotary.x, rotary.cos, rotary.sin);
  Value result = op(transpose.getX(), transposedBack(builder, transpose, rotary.cos),
                    transposedBack(builder, transpose, rotary.sin));
  return tx::TransposeOp::create(builder, transpose.getLoc(), rotary.x.getType(), result,
                                 transpose.getPermutation());
}

/// Sets the insertion point after the last of the operands, so that x dies early and the kernel
/// stays within x's module.
void setInsertionPoint(OpBuilder &builder, Operation *add, const Rotary &rotary) {
  Operation *last = nullptr;
  for (Value operand : {rotary.x, rotary.cos, rotary.sin})
    if (Operation *op = operand.getDefiningOp(); op && op->getBlock() == add->getBlock())
      if (!last || last->isBeforeInBlock(op))
        last = op;
  if (last)
    builder.setInsertionPointAfter(last);
  else
    builder.setInsertionPoint(add);
}

struct FuseRotary : partita::impl::FuseRotaryPassBase<FuseRotary> {
  void runOnOperation() override {
    getOperation().walk([&](tx::AddOp add) {
      std::optional<Rotary> found = match(add);
      if (!found)
        return;
      OpBuilder builder(add);
      setInsertionPoint(builder, add, *found);
      add.getResult().replaceAllUsesWith(build(builder, add.getLoc(), *found));
      eraseDead(add);
      ++fused;
    });
  }

  /// Erases `op`, and ops that only it used, users first.
  static void eraseDead(Operation *op) {
    SmallVector<Operation *> dead = {op};
    while (!dead.empty()) {
      Operation *next = dead.pop_back_val();
      SmallVector<Operation *> before;
      for (Value operand : next->getOperands())
        if (Operation *definition = operand.getDefiningOp();
            definition && !llvm::is_contained(before, definition))
          before.push_back(definition);
      next->erase();
      for (Operation *definition : before)
        if (isOpTriviallyDead(definition))
          dead.push_back(definition);
    }
  }
};

} // namespace
