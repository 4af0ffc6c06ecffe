// Updates by the host as work on streams (partita_rt/cuda/host_update.h).
//
// A tile's gradient is copied to the host (and its parameter, if that lives on the device), the
// host updates the tile, and the results are copied back: three streams and two halves of staging
// memory, so that one tile is copied in while another is updated and a third is copied out.

#include "partita_rt/cuda/host_update.h"

#include "common/staging.h"
#include "cuda/cuda.h"
#include "cuda/gpu/transfer.h"

#include <algorithm>
#include <memory>

namespace partita_rt::cuda {

namespace {

struct Staging : StagingHalf {
  cudaEvent_t free = nullptr; ///< recorded when the previous tile in this half has left
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
  // The device's values are final, and the staging memory is free, when the last two tiles are
  // done.
  for (Staging &half : halves)
    if (half.free)
      engine.waitCompute(half.free);
}

} // namespace partita_rt::cuda
