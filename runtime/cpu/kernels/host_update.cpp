// Updates on the host, tile by tile (transfer.h).

#include "common/staging.h"

#include <algorithm>

namespace partita_rt {

namespace {

struct Staging : StagingHalf {
  HostCopy in, out;
};

} // namespace

void updateOnHost(Rank &rank, const HostUpdate &arrays, const TileUpdate &update) {
  bool moves = arrays.home == Home::Device;
  const int64_t n = arrays.n, tile = arrays.tile;
  Staging halves[2] = {{stagingHalf(arrays, 0), {}, {}}, {stagingHalf(arrays, 1), {}, {}}};
  const auto *gradient = static_cast<const char *>(arrays.gradient);
  auto *rounded = static_cast<char *>(arrays.rounded);
  auto fetch = [&](int64_t index) {
    Staging &half = halves[index % 2];
    int64_t offset = index * tile, count = std::min(tile, n - offset);
    wait(rank, half.out); // frees its half: the copy out of the tile before the last
    half.in = toHostStart(rank, half.gradient, gradient + offset * arrays.gradientWidth,
                          count * arrays.gradientWidth);
    if (moves)
      half.in = toHostStart(rank, half.parameter, arrays.parameter + offset, count * 4);
  };
  int64_t tiles = (n + tile - 1) / tile;
  if (tiles > 0)
    fetch(0);
  for (int64_t index = 0; index < tiles; ++index) {
    Staging &half = halves[index % 2];
    if (index + 1 < tiles)
      fetch(index + 1);
    wait(rank, half.in); // and for all that started before it
    int64_t offset = index * tile, count = std::min(tile, n - offset);
    update(moves ? half.parameter : arrays.parameter + offset, half.rounded, half.gradient, offset,
           count);
    if (moves)
      half.out = toDeviceStart(rank, arrays.parameter + offset, half.parameter, count * 4);
    if (rounded)
      half.out = toDeviceStart(rank, rounded + offset * arrays.roundedWidth, half.rounded,
                               count * arrays.roundedWidth);
  }
  for (Staging &half : halves)
    wait(rank, half.out);
}

} // namespace partita_rt
