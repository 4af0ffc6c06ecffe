// Updates by the host as work on streams (partita_rt/cuda/host_update.h).
//
// A tile's gradient comes to the host (and its parameter, where that lives on the device), the host
// updates it, and what changed goes back: three streams, two halves of staging memory, so that a
// tile is copied in while another is updated and a third is copied out.

#include "partita_rt/cuda/host_update.h"

#include "cuda/cuda.h"
#include "cuda/transfer.h"

#include <algorithm>
#include <memory>

namespace partita_rt::cuda {

namespace {

/// Of the staging memory: a tile of each of the arrays that live on the device.
struct Half {
  float *parameter;
  char *gradient, *rounded;
  cudaEvent_t free = nullptr; ///< when the tile before has gone
};

Half halfOf(const HostUpdate &arrays, int number) {
  bool moves = arrays.home == Home::Device;
  int64_t floats =
      stagingElements(arrays.home, arrays.tile, arrays.gradientWidth, arrays.roundedWidth) / 2;
  auto *base = reinterpret_cast<char *>(arrays.staging + number * floats);
  Half half;
  half.parameter = moves ? reinterpret_cast<float *>(base) : nullptr; // the widest first
  half.gradient = base + (moves ? arrays.tile * 4 : 0);
  half.rounded = half.gradient + arrays.tile * arrays.gradientWidth;
  return half;
}

} // namespace

void updateOnHost(const Stream &stream, Rank &rank, const HostUpdate &arrays,
                  std::initializer_list<Scalar> scalars, HostTileUpdate update) {
  TransferEngine &engine = *rank.transfers;
  const int64_t n = arrays.n, tile = arrays.tile;
  if (n <= 0)
    return;
  const double *values = engine.nextScalars();
  gatherScalars(stream, const_cast<double *>(values), scalars);
  engine.hostwardAfterCompute();
  auto shared = std::make_shared<HostTileUpdate>(std::move(update));
  Half halves[2] = {halfOf(arrays, 0), halfOf(arrays, 1)};
  const auto *gradient = static_cast<const char *>(arrays.gradient);
  auto *rounded = static_cast<char *>(arrays.rounded);
  bool moves = arrays.home == Home::Device;
  int64_t index = 0;
  for (int64_t from = 0; from < n; from += tile, ++index) {
    Half &half = halves[index % 2];
    int64_t count = std::min(tile, n - from);
    if (half.free)
      engine.waitHostward(half.free);
    engine.copyHostward(half.gradient, gradient + from * arrays.gradientWidth,
                        count * arrays.gradientWidth);
    if (moves)
      engine.copyHostward(half.parameter, arrays.parameter + from, count * 4);
    float *parameter = moves ? half.parameter : arrays.parameter + from;
    engine.work([shared, parameter, half, from, count, values] {
      (*shared)(parameter, half.rounded, half.gradient, from, count, values);
    });
    if (moves)
      engine.copyDeviceward(arrays.parameter + from, half.parameter, count * 4);
    if (rounded)
      engine.copyDeviceward(rounded + from * arrays.roundedWidth, half.rounded,
                            count * arrays.roundedWidth);
    half.free = engine.endTile(moves || rounded);
  }
  // What the device has is new, and the staging memory free for others, when the last two are done.
  for (Half &half : halves)
    if (half.free)
      engine.waitCompute(half.free);
}

} // namespace partita_rt::cuda
