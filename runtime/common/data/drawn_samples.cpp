// Samples drawn at random (drawn_samples.h).

#include "common/data/drawn_samples.h"

#include "partita_rt/init.h"
#include "partita_rt/random.h"

#include <limits>

namespace partita_rt {

int64_t DrawnSamples::count() const { return std::numeric_limits<int64_t>::max(); }

bool DrawnSamples::provides(const Input &input) const {
  return input.role != InputRole::PositionIds && input.role != InputRole::Ones &&
         input.role != InputRole::Zeros;
}

void DrawnSamples::read(const Input &input, int64_t sample, int64_t first, int64_t n,
                        void *out) const {
  int64_t width = 1;
  for (int d = input.batched ? 1 : 0; d < input.globalShape.rank; ++d)
    width *= input.globalShape[d];
  uint64_t key = randomKey(0, input.name), begin = uint64_t(sample * width + first);
  auto draw = [&](int64_t i, int64_t bound) -> int64_t {
    if (input.role == InputRole::Shifted && first + i == 0)
      return input.filler;
    return bound > 0 ? int64_t(mix64(key + begin + uint64_t(i)) % uint64_t(bound)) : 0;
  };
  for (int64_t i = 0; i < n; ++i)
    switch (input.dtype) {
    case DType::Int64:
      static_cast<int64_t *>(out)[i] = draw(i, input.vocabulary);
      break;
    case DType::Int32:
      static_cast<int32_t *>(out)[i] = int32_t(draw(i, input.vocabulary));
      break;
    case DType::Float32:
      static_cast<float *>(out)[i] = float(standardNormal(key, begin + uint64_t(i)));
      break;
    case DType::Bool:
      static_cast<uint8_t *>(out)[i] = uint8_t(draw(i, 2));
      break;
    default:
      fail("an input cannot be filled as %s", nameOf(input.dtype));
    }
}

} // namespace partita_rt
