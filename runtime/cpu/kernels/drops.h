// Dropout of consecutive elements.

#ifndef PARTITA_RT_CPU_KERNELS_DROPS_H
#define PARTITA_RT_CPU_KERNELS_DROPS_H

#include "partita_rt/random.h"

#include <algorithm>

namespace partita_rt {

/// Calls visit(i, whether element number first + i is dropped) for i = 0 .. count - 1.
template <typename Visit>
inline void forDropped(const Drops &drops, int64_t first, int64_t count, Visit visit) {
  for (int64_t i = 0; i < count;) {
    int64_t number = first + i, within = number & 3, end = std::min(count, i + 4 - within);
    for (uint64_t word = drops.word(number >> 2) >> within * 16; i < end; ++i, word >>= 16)
      visit(i, drops.below(uint32_t(word) & 0xFFFF));
  }
}

} // namespace partita_rt

#endif // PARTITA_RT_CPU_KERNELS_DROPS_H
