// Copies between the device's memory and the host's (program.h says which memory is whose), and
// updates that the host makes.
//
// On the CPU target all of it is the machine's memory; the copies are real, made by a thread of
// their own in the order in which they began, so that what a copy reads or fills before its wait is
// as undefined as on a GPU.

#ifndef PARTITA_RT_TRANSFER_H
#define PARTITA_RT_TRANSFER_H

#include "partita_rt/kernels.h"
#include "partita_rt/program.h"
#include <functional>

namespace partita_rt {

/// A copy that is under way.
struct HostCopy {
  int64_t number = 0;
};

/// Begins a copy. Until its wait `host` is undefined and `device` must not change.
HostCopy toHostStart(Rank &rank, void *host, const void *device, int64_t bytes);
/// Begins a copy. Until its wait `device` is undefined and `host` must not change.
HostCopy toDeviceStart(Rank &rank, void *device, const void *host, int64_t bytes);
/// Returns when the copy, and all that began before it, is complete.
void wait(Rank &rank, HostCopy copy);

/// Bytes copied so far.
TransferBytes transferred(const Rank &rank);
/// Copies that were started and waited for neither themselves nor through a later one.
int64_t transfersUnderWay(const Rank &rank);

inline void toHost(Rank &rank, void *host, const void *device, int64_t bytes) {
  wait(rank, toHostStart(rank, host, device, bytes));
}
inline void toDevice(Rank &rank, void *device, const void *host, int64_t bytes) {
  wait(rank, toDeviceStart(rank, device, host, bytes));
}

/// The update of `n` elements from number `from` on: the parameter's and the gradient's, in the
/// host's memory.
using TileUpdate =
    std::function<void(float *parameter, const float *gradient, int64_t from, int64_t n)>;

/// An update by the host: the states are in its memory, the gradient on the device, the parameter
/// in `home`. In tiles of `tile` elements: while one is updated the next one's gradient (and
/// parameter) comes into the other half of `staging` and the last one's parameter goes back.
/// `staging`: stagingElements(home, tile) floats of pinned memory.
void updateOnHost(Rank &rank, Home home, float *parameter, const float *gradient, int64_t n,
                  float *staging, int64_t tile, const TileUpdate &update);

/// Two halves, each with a tile of the gradient and, where it lives on the device, the parameter.
constexpr int64_t stagingElements(Home home, int64_t tile) {
  return 2 * tile * (home == Home::Device ? 2 : 1);
}

} // namespace partita_rt

#endif // PARTITA_RT_TRANSFER_H
