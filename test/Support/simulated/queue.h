// What the simulated libraries (cuBLASLt, NCCL) and tests have of the simulated CUDA runtime beside
// NVIDIA's API: entries of their own in streams, whose memory an address is, and the schedule.
//
// Entries run while the host waits, one at a time, on the thread that waits, with device memory
// open. Everything here may be called from any thread.

#ifndef PARTITA_TEST_SIMULATED_QUEUE_H
#define PARTITA_TEST_SIMULATED_QUEUE_H

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace simulated {

/// Puts an entry at the end of a stream. It runs when all before it has, in the stream and behind
/// the events that the stream waits for. In a capture it becomes a node, which runs in each launch
/// of the graph: what `run` and `ready` capture must hold for all of them, and a count of calls
/// ("the communicator's third collective") is taken when they run, not when they are put here.
///
/// ready: asked only once everything before the entry has run, again and again until it says yes;
/// `run` follows at once. Other entries run meanwhile. The first question is therefore where this
/// rank arrives at a collective. What never becomes ready is an error of the host's wait
/// (setTimeout), with the names of what is waited for: `name` says what and with whom.
///
/// What run throws is printed and makes the device's error cudaErrorLaunchFailure, as a kernel that
/// fails on a GPU: all that comes later in the process fails. Neither function may call CUDA; what
/// is declared here they may.
///
/// On the legacy stream (null) it runs before enqueue returns, and enqueue throws what it throws.
cudaError_t enqueue(cudaStream_t stream, std::string name, std::function<void()> run,
                    std::function<bool()> ready = {});

/// Prints "simulated CUDA: ..." on stderr, makes it cudaGetLastError's and returns it.
cudaError_t misuse(cudaError_t error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/// The device's error from now on, as after a failed kernel: every call returns it.
void failDevice(cudaError_t error, const std::string &message);

//===-- Memory ------------------------------------------------------------------------------===//

enum class Memory {
  Pageable, ///< the host's own; a device cannot reach it
  Pinned,   ///< cudaMallocHost, cudaHostAlloc, cudaHostRegister
  Device,
};
/// Whose memory an address is. Of freed device memory, and beyond an allocation: Device, still.
Memory memoryOf(const void *address);
/// Is all of [address, address + bytes) inside one live allocation (or registration) of the
/// device's or of pinned memory? What operands of kernels and libraries must be.
bool reachable(const void *address, size_t bytes);
/// "8 bytes into an allocation of 4096 bytes of device memory", "pageable host memory".
std::string describe(const void *address);

/// While one lives, this process may read and write device memory: for what a library reads at its
/// call, and for tests that look at results. Entries run with one.
class DeviceAccess {
public:
  DeviceAccess();
  ~DeviceAccess();
  DeviceAccess(const DeviceAccess &) = delete;
  DeviceAccess &operator=(const DeviceAccess &) = delete;
};

//===-- The schedule ------------------------------------------------------------------------===//

/// Which orders the following waits draw. Initially PARTITA_SIMULATED_SEED, or 1.
void setSeed(uint64_t seed);
/// For how long a host's wait may find nothing that can run before it is given up with
/// cudaErrorLaunchTimeout. Initially PARTITA_SIMULATED_TIMEOUT, or 120 seconds.
void setTimeout(double seconds);

/// What has happened so far in the process.
struct Counters {
  int64_t enqueued; ///< entries put into streams, nodes of launched graphs among them
  int64_t ran;
  int64_t graphLaunches;
  int64_t hostWaits; ///< that found something to wait for
};
Counters counters();

} // namespace simulated

#endif // PARTITA_TEST_SIMULATED_QUEUE_H
