//===- RandomInputs.cpp - arguments to try a function on --------------------------------------===//

#include "partita/Interp/RandomInputs.h"
#include "dialects/Par/Placement.h"
#include "partita/Interp/Random.h"

using namespace mlir;
using namespace partita;
using namespace partita::interp;

/// Numbers of a range attribute; false when it is malformed.
static bool readRange(Attribute attribute, double &low, double &high) {
  auto array = dyn_cast<ArrayAttr>(attribute);
  if (!array || array.size() != 2)
    return false;
  double *ends[] = {&low, &high};
  for (unsigned i = 0; i < 2; ++i) {
    if (auto real = dyn_cast<FloatAttr>(array[i]))
      *ends[i] = real.getValueAsDouble();
    else if (auto integer = dyn_cast<IntegerAttr>(array[i]))
      *ends[i] = static_cast<double>(integer.getInt());
    else
      return false;
  }
  return low <= high;
}

FailureOr<SmallVector<Tensor>> partita::interp::randomInputs(func::FuncOp function, uint64_t seed) {
  SmallVector<Tensor> inputs;
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape() ||
        !isa<FloatType, IntegerType>(tensor.getElementType()))
      return function.emitError() << "argument " << i << " must be a tensor of static shape, it is "
                                  << type;
    Tensor value(par::fullType(type));
    double low = 0, high = tensor.getElementType().isInteger(1) ? 1 : 3;
    Attribute range = function.getArgAttr(i, kRange);
    if (range && !readRange(range, low, high))
      return function.emitError() << "argument " << i << ": " << kRange
                                  << " must be [low, high], it is " << range;
    uint64_t key = randomKey(seed, std::to_string(i));
    for (int64_t e = 0; e < value.size(); ++e) {
      if (value.isReal)
        value.reals[e] = range ? low + (high - low) * uniform(key, e) : standardNormal(key, e);
      else
        value.ints[e] = static_cast<int64_t>(std::floor(low + (high + 1 - low) * uniform(key, e)));
    }
    inputs.push_back(std::move(value));
  }
  return inputs;
}
