// Updates by the host as work on streams (partita_rt/cuda/host_update.h).
//
// A tile's gradient comes to the host (and its parameter, where that lives on the device), the host
// updates it, and what changed goes back: three streams, two halves of staging memory, so that a
// tile is copied in while another is updated and a third is copied out.

#include "partita_rt/cuda/host_update.h"

#include "common/staging.h"
#include "cuda/cuda.h"
#include "cuda/gpu/transfer.h"

#include <algorithm>
#include <memory>

namespace partita_rt::cuda {

namespace {

struct Staging : StagingHalf {
  cudaEvent_t free = nullptr; ///< when the tile before has gone
};

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
  Staging halves[2] = {{stagingHalf(arrays, 0)}, {stagingHalf(arrays, 1)}};
  const auto *gradient = static_cast<const char *>(arrays.gradient);
  auto *rounded = static_cast<char *>(arrays.rounded);
  bool moves = arrays.home == Home::Device;
  int64_t index = 0;
  for (int64_t from = 0; from < n; from += tile, ++index) {
    Staging &half = halves[index % 2];
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
  for (Staging &half : halves)
    if (half.free)
      engine.waitCompute(half.free);
}

} // namespace partita_rt::cuda
