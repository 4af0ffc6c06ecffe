// Updates on a GPU's host (partita_rt/transfer.h), as emitted CUDA programs call them.
//
// Nothing waits: copies, the host's arithmetic and the copies back are work on streams, tile by
// tile, so one graph can hold them with the rest of the step.

#ifndef PARTITA_RT_CUDA_HOST_UPDATE_H
#define PARTITA_RT_CUDA_HOST_UPDATE_H

#include "partita_rt/cuda/scalar.h"
#include "partita_rt/cuda/stream.h"
#include "partita_rt/transfer.h"

namespace partita_rt::cuda {

/// Max number of scalars per update.
constexpr int kHostScalars = 16;

/// update(parameter, rounded, gradient, from, n, scalars): like TileUpdate, with the scalars'
/// values. A CUDA thread calls it later, and again at every launch of a graph, so it must capture
/// by value, and whatever it refers to must stay valid.
using HostTileUpdate = std::function<void(float *parameter, void *rounded, const void *gradient,
                                          int64_t from, int64_t n, const double *scalars)>;

void updateOnHost(const Stream &stream, Rank &rank, const HostUpdate &arrays,
                  std::initializer_list<Scalar> scalars, HostTileUpdate update);

/// Like the above, as emitted code calls it; G: float, Half or BFloat16.
/// update(float *parameter, const G *gradient, int64_t from, int64_t n, const double *scalars)
template <typename G, typename Update>
void updateOnHost(const Stream &stream, Rank &rank, Home home, float *parameter, const G *gradient,
                  int64_t n, float *staging, int64_t tile, std::initializer_list<Scalar> scalars,
                  Update update) {
  HostUpdate arrays{home, parameter, nullptr, 0, gradient, int64_t(sizeof(G)), n, staging, tile};
  updateOnHost(
      stream, rank, arrays, scalars,
      [update](float *p, void *, const void *g, int64_t from, int64_t count, const double *values) {
        update(p, static_cast<const G *>(g), from, count, values);
      });
}

/// Like the above, for a master in host memory; R: Half or BFloat16.
/// update(float *master, R *rounded, const G *gradient, int64_t from, int64_t n, const double *)
template <typename R, typename G, typename Update>
void updateOnHost(const Stream &stream, Rank &rank, float *master, R *rounded, const G *gradient,
                  int64_t n, float *staging, int64_t tile, std::initializer_list<Scalar> scalars,
                  Update update) {
  HostUpdate arrays{Home::Host, master,  rounded, int64_t(sizeof(R)), gradient, int64_t(sizeof(G)),
                    n,          staging, tile};
  updateOnHost(stream, rank, arrays, scalars,
               [update](float *p, void *r, const void *g, int64_t from, int64_t count,
                        const double *values) {
                 update(p, static_cast<R *>(r), static_cast<const G *>(g), from, count, values);
               });
}

/// Sets to[i] = scalars[i], in memory that the host sees; at most kHostScalars. A kernel.
void gatherScalars(const Stream &stream, double *to, std::initializer_list<Scalar> scalars);

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_HOST_UPDATE_H
