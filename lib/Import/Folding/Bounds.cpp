//===- Bounds.cpp -----------------------------------------------------------------------------===//

#include "lib/Import/Folding/Bounds.h"
#include "dialects/Tx/Tx.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace partita::importer {
namespace {

/// low .. high, both included.
struct Interval {
  int64_t low, high;
  bool operator!=(Interval other) const { return low != other.low || high != other.high; }
};

/// All values of the type.
Interval anyOf(Type type) {
  unsigned width = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  if (width == 1)
    return {0, 1};
  return {llvm::minIntN(width), llvm::maxIntN(width)};
}

Interval either(Interval a, Interval b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

/// The bounds of a sum, difference or product are at the corners, unless one overflows.
using Overflowing = bool (*)(int64_t, int64_t, int64_t &);
bool overflowsAdd(int64_t a, int64_t b, int64_t &r) { return llvm::AddOverflow(a, b, r); }
bool overflowsSub(int64_t a, int64_t b, int64_t &r) { return llvm::SubOverflow(a, b, r); }
bool overflowsMul(int64_t a, int64_t b, int64_t &r) { return llvm::MulOverflow(a, b, r); }

Interval corners(Interval a, Interval b, Overflowing combine, Interval any) {
  std::optional<Interval> all;
  for (int64_t x : {a.low, a.high})
    for (int64_t y : {b.low, b.high}) {
      int64_t r;
      if (combine(x, y, r) || r < any.low || r > any.high)
        return any;
      all = all ? either(*all, {r, r}) : Interval{r, r};
    }
  return *all;
}

class Bounds {
public:
  Interval of(Value value, int depth = 0) {
    Interval any = anyOf(value.getType());
    Operation *op = value.getDefiningOp();
    if (!op || depth > mostDeep || known.size() > mostValues)
      return any;
    if (auto it = known.find(value); it != known.end())
      return it->second;
    Interval result = compute(op, any, depth + 1);
    if (result.low < any.low || result.high > any.high)
      result = any; // a cast that wraps around
    known.insert({value, result});
    return result;
  }

private:
  // Limits, because a model can be made to be searched forever.
  static constexpr int mostDeep = 128;
  static constexpr size_t mostValues = 1024;

  Interval compute(Operation *op, Interval any, int depth) {
    auto operand = [&](unsigned i) { return of(op->getOperand(i), depth); };
    return llvm::TypeSwitch<Operation *, Interval>(op)
        .Case([&](tx::ConstantOp constant) { return ofConstant(constant, any); })
        .Case([&](tx::IotaOp iota) { return ofIota(iota, any); })
        .Case<tx::ReshapeOp, tx::TransposeOp, tx::BroadcastOp, tx::SliceOp, tx::ReduceMaxOp>(
            [&](auto) { return operand(0); })
        .Case([&](tx::CastOp cast) {
          return isa<IntegerType>(getElementTypeOrSelf(cast.getX())) ? operand(0) : any;
        })
        .Case([&](tx::ConcatOp concat) {
          Interval all = operand(0);
          for (unsigned i = 1; i < concat->getNumOperands(); ++i)
            all = either(all, operand(i));
          return all;
        })
        .Case([&](tx::SelectOp) { return either(operand(1), operand(2)); })
        .Case([&](tx::MinOp) {
          Interval a = operand(0), b = operand(1);
          return Interval{std::min(a.low, b.low), std::min(a.high, b.high)};
        })
        .Case([&](tx::MaxOp) {
          Interval a = operand(0), b = operand(1);
          return Interval{std::max(a.low, b.low), std::max(a.high, b.high)};
        })
        .Case([&](tx::AddOp) { return corners(operand(0), operand(1), overflowsAdd, any); })
        .Case([&](tx::SubOp) { return corners(operand(0), operand(1), overflowsSub, any); })
        .Case([&](tx::MulOp) { return corners(operand(0), operand(1), overflowsMul, any); })
        .Case([&](tx::ModuloOp) { // of the divisor's sign
          Interval divisor = operand(1);
          return divisor.low > 0 ? Interval{0, divisor.high - 1} : any;
        })
        .Default([&](Operation *) { return any; });
  }

  static Interval ofConstant(tx::ConstantOp constant, Interval any) {
    auto dense = dyn_cast<DenseIntElementsAttr>(constant.getValue());
    if (!dense || dense.empty() || dense.getElementType().isInteger(1))
      return any;
    std::optional<Interval> all;
    if (dense.isSplat())
      return {dense.getSplatValue<APInt>().getSExtValue(),
              dense.getSplatValue<APInt>().getSExtValue()};
    for (const APInt &value : dense.getValues<APInt>()) {
      int64_t one = value.getSExtValue();
      all = all ? either(*all, {one, one}) : Interval{one, one};
    }
    return *all;
  }

  static Interval ofIota(tx::IotaOp iota, Interval any) {
    double first = iota.getStart().convertToDouble();
    double last = first + iota.getStep().convertToDouble() * (iota.getType().getDimSize(0) - 1);
    constexpr double exact = int64_t(1) << 53;
    if (!(std::abs(first) <= exact && std::abs(last) <= exact))
      return any;
    return {static_cast<int64_t>(std::min(first, last)),
            static_cast<int64_t>(std::max(first, last))};
  }

  llvm::DenseMap<Value, Interval> known;
};

/// Does every element of the operand become one run of elements of the result?
bool repeatsWithinRuns(tx::BroadcastOp op) {
  llvm::ArrayRef<int64_t> from = op.getX().getType().getShape(), to = op.getType().getShape();
  size_t added = to.size() - from.size(), at = 0;
  while (at < to.size() && (at < added ? 1 : from[at - added]) == to[at])
    ++at; // what is repeated must all come after what is not
  for (; at < to.size(); ++at)
    if (at >= added && from[at - added] != 1)
      return false;
  return true;
}

} // namespace

bool isWithin(Value value, int64_t size) {
  Interval bounds = Bounds().of(value);
  return bounds.low >= 0 && bounds.high < size;
}

bool keepsIntegers(Operation *op) {
  auto isWide = [](Type type) {
    auto integer = dyn_cast<IntegerType>(getElementTypeOrSelf(type));
    return integer && integer.getWidth() >= 32;
  };
  return isa<tx::ReshapeOp, tx::CastOp>(op) && isWide(op->getOperand(0).getType()) &&
         isWide(op->getResult(0).getType());
}

bool countsUp(Value value, int64_t count, int64_t step) {
  auto type = [&] { return cast<RankedTensorType>(value.getType()); };
  if (!isa<IntegerType>(type().getElementType()) || type().getNumElements() % count != 0 ||
      step > INT32_MAX / count)
    return false;
  while (Operation *op = value.getDefiningOp()) {
    auto broadcast = dyn_cast<tx::BroadcastOp>(op);
    if (!keepsIntegers(op) && !(broadcast && repeatsWithinRuns(broadcast)))
      break;
    value = op->getOperand(0);
  }
  if (type().getNumElements() != count)
    return false;
  if (auto iota = value.getDefiningOp<tx::IotaOp>())
    return iota.getStart().isZero() && iota.getStep().isExactlyValue(static_cast<double>(step));
  auto constant = value.getDefiningOp<tx::ConstantOp>();
  auto dense = constant ? dyn_cast<DenseIntElementsAttr>(constant.getValue()) : nullptr;
  if (!dense || dense.getElementType().isInteger(1))
    return false;
  int64_t expected = 0;
  for (const APInt &element : dense.getValues<APInt>()) {
    if (element.getSExtValue() != expected)
      return false;
    expected += step;
  }
  return true;
}

} // namespace partita::importer
