// Lays out the tiles in transit of an update by the host (partita_rt/transfer.h), on every target.

#ifndef PARTITA_RT_COMMON_STAGING_H
#define PARTITA_RT_COMMON_STAGING_H

#include "partita_rt/transfer.h"

namespace partita_rt {

/// One half of the staging memory: a tile of each of the arrays that live on the device.
struct StagingHalf {
  float *parameter; ///< null if the parameter lives on the host
  char *gradient, *rounded;
};

/// Returns half number 0 or 1 of the memory that stagingElements announces; the widest elements
/// come first.
inline StagingHalf stagingHalf(const HostUpdate &arrays, int number) {
  bool moves = arrays.home == Home::Device;
  int64_t floats =
      stagingElements(arrays.home, arrays.tile, arrays.gradientWidth, arrays.roundedWidth) / 2;
  auto *base = reinterpret_cast<char *>(arrays.staging + number * floats);
  char *gradient = base + (moves ? arrays.tile * 4 : 0);
  return {moves ? reinterpret_cast<float *>(base) : nullptr, gradient,
          gradient + arrays.tile * arrays.gradientWidth};
}

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_STAGING_H
