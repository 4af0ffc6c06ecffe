// Copies between device and host memory (program.h says what lives where), and updates on the host.
//
// On the CPU target both are the machine's memory. The copies are real: a thread of their own makes
// them in the order of their starts, so memory that a copy reads or fills before its wait is as
// undefined as on a GPU.

#ifndef PARTITA_RT_TRANSFER_H
#define PARTITA_RT_TRANSFER_H

#include "partita_rt/kernels.h"
#include "partita_rt/program.h"
#include <functional>

namespace partita_rt {

/// A pending copy.
struct HostCopy {
  int64_t number = 0;
};

/// Starts a copy. Until its wait `host` is undefined and `device` must not change.
HostCopy toHostStart(Rank &rank, void *host, const void *device, int64_t bytes);
/// Starts a copy. Until its wait `device` is undefined and `host` must not change.
HostCopy toDeviceStart(Rank &rank, void *device, const void *host, int64_t bytes);
/// Returns when the copy, and all that started before it, are complete.
void wait(Rank &rank, HostCopy copy);

/// Returns the bytes copied so far.
TransferBytes transferred(const Rank &rank);
/// Returns the number of copies started but not completed by a wait for them or for a later one.
int64_t transfersUnderWay(const Rank &rank);

inline void toHost(Rank &rank, void *host, const void *device, int64_t bytes) {
  wait(rank, toHostStart(rank, host, device, bytes));
}
inline void toDevice(Rank &rank, void *device, const void *host, int64_t bytes) {
  wait(rank, toDeviceStart(rank, device, host, bytes));
}

/// The arrays of an update on the host: the states in host memory, the gradient on the device.
struct HostUpdate {
  Home home; ///< the parameter's, or that of a 16-bit parameter's master
  float *parameter;
  void *rounded;        ///< on the device: the new value in 16 bits, or null
  int64_t roundedWidth; ///< bytes of its elements
  const void *gradient;
  int64_t gradientWidth;
  int64_t n;      ///< elements
  float *staging; ///< stagingElements of pinned memory
  int64_t tile;   ///< elements
};

/// Returns the floats of two halves, each with a tile of the gradient, of the parameter if it lives
/// on the device, and of the rounded value. Widths are in bytes.
constexpr int64_t stagingElements(Home home, int64_t tile, int64_t gradientWidth = 4,
                                  int64_t roundedWidth = 0) {
  int64_t bytes = gradientWidth + roundedWidth + (home == Home::Device ? 4 : 0);
  return 2 * ((tile * bytes + 3) / 4);
}

/// Updates `n` elements from number `from` on, all in host memory.
using TileUpdate = std::function<void(float *parameter, void *rounded, const void *gradient,
                                      int64_t from, int64_t n)>;

/// Runs the update in tiles. While one tile is updated, the next one's gradient (and parameter) is
/// copied into the other half of the staging memory, and the previous one's parameter, or its
/// rounded value, to the device.
void updateOnHost(Rank &rank, const HostUpdate &arrays, const TileUpdate &update);

/// Like the above, as emitted code calls it; G: float, Half or BFloat16.
/// update(float *parameter, const G *gradient, int64_t from, int64_t n)
template <typename G, typename Update>
void updateOnHost(Rank &rank, Home home, float *parameter, const G *gradient, int64_t n,
                  float *staging, int64_t tile, const Update &update) {
  HostUpdate arrays{home, parameter, nullptr, 0, gradient, int64_t(sizeof(G)), n, staging, tile};
  updateOnHost(rank, arrays, [&](float *p, void *, const void *g, int64_t from, int64_t count) {
    update(p, static_cast<const G *>(g), from, count);
  });
}

/// Like the above, for a master in host memory; R: Half or BFloat16.
/// update(float *master, R *rounded, const G *gradient, int64_t from, int64_t n)
template <typename R, typename G, typename Update>
void updateOnHost(Rank &rank, float *master, R *rounded, const G *gradient, int64_t n,
                  float *staging, int64_t tile, const Update &update) {
  HostUpdate arrays{Home::Host, master,  rounded, int64_t(sizeof(R)), gradient, int64_t(sizeof(G)),
                    n,          staging, tile};
  updateOnHost(rank, arrays, [&](float *p, void *r, const void *g, int64_t from, int64_t count) {
    update(p, static_cast<R *>(r), static_cast<const G *>(g), from, count);
  });
}

} // namespace partita_rt

#endif // PARTITA_RT_TRANSFER_H
