// Updates on the host, tile by tile (transfer.h).

#include "partita_rt/transfer.h"

#include <algorithm>

namespace partita_rt {

void updateOnHost(Rank &rank, Home home, float *parameter, const float *gradient, int64_t n,
                  float *staging, int64_t tile, const TileUpdate &update) {
  bool moves = home == Home::Device;
  struct Half {
    float *gradient, *parameter;
    HostCopy in, out;
  };
  Half halves[2];
  for (int h = 0; h < 2; ++h) {
    float *base = staging + h * stagingElements(home, tile) / 2;
    halves[h] = {base, base + tile, {}, {}};
  }
  auto fetch = [&](int64_t index) {
    Half &half = halves[index % 2];
    int64_t offset = index * tile, bytes = std::min(tile, n - offset) * 4;
    if (moves)
      wait(rank, half.out); // its half is free when the tile before the last has gone back
    half.in = toHostStart(rank, half.gradient, gradient + offset, bytes);
    if (moves)
      half.in = toHostStart(rank, half.parameter, parameter + offset, bytes);
  };
  int64_t tiles = (n + tile - 1) / tile;
  if (tiles > 0)
    fetch(0);
  for (int64_t index = 0; index < tiles; ++index) {
    Half &half = halves[index % 2];
    if (index + 1 < tiles)
      fetch(index + 1);
    wait(rank, half.in); // with all that began before it
    int64_t offset = index * tile, count = std::min(tile, n - offset);
    update(moves ? half.parameter : parameter + offset, half.gradient, offset, count);
    if (moves)
      half.out = toDeviceStart(rank, parameter + offset, half.parameter, count * 4);
  }
  if (moves)
    for (Half &half : halves)
      wait(rank, half.out);
}

} // namespace partita_rt
