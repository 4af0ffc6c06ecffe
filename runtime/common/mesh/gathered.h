// What each rank says to all, as one line of set-up and reports: an all-gather of the world.

#ifndef PARTITA_RT_COMMON_MESH_GATHERED_H
#define PARTITA_RT_COMMON_MESH_GATHERED_H

#include "partita_rt/comm.h"
#include "partita_rt/program.h"

#include <type_traits>
#include <vector>

namespace partita_rt {

/// Returns all ranks' elements, rank after rank; each gives as many. `why`: for reports. Ranks must be
/// of one build, whose T has one layout.
template <typename T>
std::vector<T> gathered(const Rank &rank, const std::vector<T> &mine, const char *why) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % sizeof(int64_t) == 0 &&
                alignof(T) == alignof(int64_t));
  std::vector<T> all(mine.size() * size_t(rank.ranks));
  allGather(
      *rank.world,
      {{reinterpret_cast<const int64_t *>(mine.data()), reinterpret_cast<int64_t *>(all.data()),
        int64_t(mine.size() * sizeof(T) / sizeof(int64_t))}},
      why);
  return all;
}

/// The same of one element: by rank.
template <typename T> std::vector<T> gathered(const Rank &rank, const T &mine, const char *why) {
  return gathered(rank, std::vector<T>{mine}, why);
}

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_MESH_GATHERED_H
