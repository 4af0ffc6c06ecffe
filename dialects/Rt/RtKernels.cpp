//===- RtKernels.cpp - see RtKernels.td -------------------------------------------------------===//

#include "dialects/Rt/Rt.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

#define GET_OP_CLASSES
#include "dialects/Rt/RtKernels.cpp.inc"

/// The kernel's scalars, each `{}` of them one of the pointers.
static SmallVector<CallArgument> scalarsOf(UpdateOp op) {
  SmallVector<CallArgument> arguments;
  ValueRange pointers = op.getPointers();
  for (StringRef text : op.getScalars().getAsValueRange<StringAttr>()) {
    size_t used = text.count("{}");
    arguments.emplace_back(text.str(), SmallVector<Value>(pointers.take_front(used)));
    pointers = pointers.drop_front(used);
  }
  return arguments;
}

/// kernel(p, m, v, g, n, scalars...), or
/// updateOnHost(rank, home, p, g, n, staging, tile, [&](float *p, const float *g, int64_t from,
/// int64_t n) { kernel(p, m + from, v + from, g, n, scalars...); }); of a master, which the host
/// has, `rounded` takes the home's place and stands behind the states.
SmallVector<CallArgument> UpdateOp::getCallArguments() {
  OperandRange values = getValues(), states = values.drop_front().drop_back(getRounds() ? 2 : 1);
  SmallVector<CallArgument> scalars = scalarsOf(*this);
  if (!getTile()) {
    SmallVector<CallArgument> arguments(values.begin(), values.end());
    arguments.push_back(static_cast<int64_t>(getN()));
    arguments.append(scalars);
    return arguments;
  }
  Value rounded = getRounds() ? values.drop_back().back() : Value();
  auto pointerTo = [](Value value) {
    return cppName(cast<BufferType>(value.getType()).getElement()).str() + " *";
  };
  CallArgument body("[&](float *p, " + (rounded ? pointerTo(rounded) + "rounded, " : "") +
                    "const " + pointerTo(values.back()) + "g, int64_t from, int64_t n) {{ " +
                    getKernel().str() + "(p");
  for (Value state : states) {
    body.text += ", {} + from";
    body.values.push_back(state);
  }
  body.text += rounded ? ", rounded, g, n" : ", g, n";
  for (const CallArgument &scalar : scalars) {
    body.text += ", " + scalar.text;
    body.values.append(scalar.values);
  }
  body.text += "); }";
  SmallVector<CallArgument> arguments = {"rank"};
  if (!rounded)
    arguments.push_back(argument::home(getParameterOnHost()));
  arguments.push_back(values.front());
  if (rounded)
    arguments.push_back(rounded);
  arguments.append({values.back(), static_cast<int64_t>(getN()), getStaging(),
                    static_cast<int64_t>(getTile()), std::move(body)});
  return arguments;
}

/// {{a, 12}, {b, 6}}
static CallArgument withCounts(ValueRange buffers, ArrayRef<int64_t> counts) {
  std::string text = "{{";
  for (auto [i, count] : llvm::enumerate(counts))
    text += (i ? ", {{{}, " : "{{{}, ") + std::to_string(count) + "}";
  return CallArgument(text + "}", SmallVector<Value>(buffers));
}

/// squareSum(sums, {{a, 12}, {b, 6}})
SmallVector<CallArgument> SquareSumOp::getCallArguments() {
  return {getSum(), withCounts(getValues(), getCounts())};
}

/// rootOfSum(norm, {{a, 2}, {b, 1}})
SmallVector<CallArgument> NormOp::getCallArguments() {
  return {getNorm(), withCounts(getSquares(), getCounts())};
}

/// firstNonfinite(rank, {{a, 2}, {b, 1}}, {0, 3, 2})
SmallVector<CallArgument> FirstNonfiniteOp::getCallArguments() {
  return {"rank", withCounts(getSquares(), getCounts()), argument::listing(getParameters())};
}
