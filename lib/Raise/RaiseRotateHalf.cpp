//===- RaiseRotateHalf.cpp - rotary embedding's quarter turn becomes tx.rotate_half -----------===//
//
// From every concatenation of two parts along a dimension, the first one negated: where the parts
// are the second and first half of a tensor's last dimension, or its elements of odd and even index
// beside each other in a new dimension that a reshape then joins, the whole is one op. What is cut
// and where is exact, so there is nothing to compare.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Par/Par.h"
#include "lib/Raise/Layout.h"
#include "lib/Raise/NumericCheck.h"
#include "lib/Raise/Remarks.h"
#include "partita/Raise/Passes.h"
#include "partita/Raise/Subgraph.h"

namespace partita {
#define GEN_PASS_DEF_RAISEROTATEHALF
#include "partita/Raise/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using namespace partita::raise;

namespace {

/// Every second or contiguous elements of the last dimension of `x`, multiplied by `factor`.
struct Part {
  Value x;
  int64_t offset, stride, size;
  double factor;
};

/// Through products with a constant, which may come before or after the reshape that makes room for
/// the new dimension.
std::optional<Part> readPart(Value value) {
  double factor = 1;
  while (Operation *op = value.getDefiningOp()) {
    if (auto slice = dyn_cast<tx::SliceOp>(op)) {
      auto from = slice.getX().getType(), to = slice.getType();
      int64_t last = from.getRank() - 1;
      for (int64_t dim = 0; dim < last; ++dim)
        if (from.getDimSize(dim) != to.getDimSize(dim) || slice.getStrides()[dim] != 1)
          return std::nullopt;
      if (last < 0)
        return std::nullopt;
      return Part{slice.getX(), slice.getOffsets()[last], slice.getStrides()[last],
                  to.getDimSize(last), factor};
    }
    auto mul = dyn_cast<tx::MulOp>(op);
    std::optional<double> number = mul ? splatOf(mul.getB()) : std::nullopt;
    if (isa<tx::NegOp>(op))
      factor = -factor;
    else if (number)
      factor *= *number;
    else if (!isa<tx::ReshapeOp>(op))
      return std::nullopt;
    value = op->getOperand(0);
  }
  return std::nullopt;
}

/// The tensor that `concat` is the quarter turn of, and how pairs lie in it.
struct Turn {
  Value x;
  bool interleaved = false;
  std::string problem; // why it is none, although the parts lie as in one
};

/// The second half, negated, comes before the first one.
std::string readFactors(const Part &first, const Part &second, StringRef ofFirst,
                        StringRef ofSecond) {
  auto text = [](StringRef part, double factor, StringRef wanted) {
    return (part + " is multiplied by " + numberText(factor) + ", it would be with " + wanted)
        .str();
  };
  if (first.factor == 1 && second.factor == 1)
    return (ofFirst + " is not negated").str();
  if (first.factor == 1 && second.factor == -1)
    return (ofSecond + " is negated, it would be with " + ofFirst).str();
  if (first.factor != -1)
    return text(ofFirst, first.factor, "-1");
  return second.factor == 1 ? std::string() : text(ofSecond, second.factor, "1");
}

/// The end, negated, before the beginning, where they are not equally long.
std::string explainSizes(const Part &first, const Part &second, int64_t width) {
  bool swapped = first.stride == 1 && second.stride == 1 && second.offset == 0 &&
                 first.offset == second.size && first.offset + first.size == width;
  if (!swapped || first.size == second.size || first.factor != -1 || second.factor != 1)
    return "";
  return "its parts are the last " + std::to_string(first.size) + " and the first " +
         std::to_string(second.size) + " of " + std::to_string(width) +
         " elements, they would be halves";
}

std::optional<Turn> readTurn(tx::ConcatOp concat) {
  if (concat.getInputs().size() != 2)
    return std::nullopt;
  auto first = readPart(concat.getInputs()[0]), second = readPart(concat.getInputs()[1]);
  if (!first || !second || first->x != second->x)
    return std::nullopt;
  ArrayRef<int64_t> shape = cast<RankedTensorType>(first->x.getType()).getShape();
  int64_t half = shape.back() / 2, last = concat.getType().getRank() - 1;
  bool joined = static_cast<int64_t>(concat.getDim()) == last;
  if (std::string problem = explainSizes(*first, *second, shape.back()); joined && !problem.empty())
    return Turn{first->x, false, problem};
  if (first->size != half || second->size != half || shape.back() % 2 != 0)
    return std::nullopt;
  bool halves =
      first->stride == 1 && second->stride == 1 && first->offset == half && second->offset == 0;
  if (halves && joined && concat.getType().getShape() == shape)
    return Turn{first->x, false, readFactors(*first, *second, "the second half", "the first half")};
  // [..., n/2, 1] and the same, joined: [..., n/2, 2].
  SmallVector<int64_t> paired(shape);
  paired.back() = half;
  paired.push_back(2);
  bool alternate =
      first->stride == 2 && second->stride == 2 && first->offset == 1 && second->offset == 0;
  if (alternate && joined && concat.getType().getShape() == ArrayRef<int64_t>(paired))
    return Turn{first->x, true,
                readFactors(*first, *second, "the part of odd index", "the part of even index")};
  return std::nullopt;
}

struct RaiseRotateHalfPass : partita::impl::RaiseRotateHalfBase<RaiseRotateHalfPass> {
  using Base::Base;
  void runOnOperation() override {
    Report report("rotate_half", remarks, numRaised, numMissed);
    SmallVector<tx::ConcatOp> concats;
    getOperation().walk([&](tx::ConcatOp op) { concats.push_back(op); });
    for (tx::ConcatOp concat : concats) {
      std::optional<Turn> turn = readTurn(concat);
      if (!turn)
        continue;
      if (!turn->problem.empty()) {
        report.reject(concat.getLoc(), turn->problem);
        continue;
      }
      OpBuilder builder(concat);
      SmallVector<NamedAttribute> attributes;
      if (turn->interleaved)
        attributes.push_back(builder.getNamedAttr("interleaved", builder.getUnitAttr()));
      Value turned =
          tx::RotateHalfOp::create(builder, concat.getLoc(), ValueRange{turn->x}, attributes);
      concat.getResult().replaceAllUsesWith(
          createReshape(builder, concat.getLoc(), turned, concat.getType().getShape()));
      report.accept(concat.getLoc(), tx::RotateHalfOp::getOperationName());
    }
    eraseDead(getOperation());
  }
};

} // namespace
