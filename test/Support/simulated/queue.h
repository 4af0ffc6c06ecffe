// Functions of the simulated CUDA runtime for the simulated libraries (cuBLASLt, NCCL) and tests,
// in addition to NVIDIA's API: their own entries in streams, the kind of memory of an address, and
// the schedule.
//
// Entries run while the host waits, one at a time, on the waiting thread, with device memory
// accessible. Everything here may be called from any thread.

#ifndef PARTITA_TEST_SIMULATED_QUEUE_H
#define PARTITA_TEST_SIMULATED_QUEUE_H

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace simulated {

/// Appends an entry to a stream. It runs after everything before it, in the stream and before the
/// events that the stream waits for. In a capture it becomes a node, which runs in each launch of
/// the graph: captures of `run` and `ready` must hold for all of them, and a count of calls ("the
/// communicator's third collective") must be taken when they run, not when they are enqueued.
///
/// ready: called only once everything before the entry has run, repeatedly until it returns true;
/// `run` follows at once. Other entries run meanwhile. So the first call is when this rank arrives
/// at a collective. If it never returns true, the host's wait fails (setTimeout), naming what is
/// waited for: `name` should say what and with whom.
///
/// An exception of `run` is printed and makes the device's error cudaErrorLaunchFailure, as a
/// kernel that fails on a GPU: everything later in the process fails. Neither function may call
/// CUDA; the functions declared here are allowed.
///
/// On the legacy stream (null) the entry runs before enqueue returns, and enqueue passes on its
/// exceptions.
cudaError_t enqueue(cudaStream_t stream, std::string name, std::function<void()> run,
                    std::function<bool()> ready = {});

/// Prints "simulated CUDA: ..." on stderr, sets cudaGetLastError's error and returns it.
cudaError_t misuse(cudaError_t error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/// Sets the device's error from now on, as after a failed kernel: every call returns it.
void failDevice(cudaError_t error, const std::string &message);

//===-- Memory ------------------------------------------------------------------------------===//

enum class Memory {
  Pageable, ///< the host's own; the device cannot access it
  Pinned,   ///< cudaMallocHost, cudaHostAlloc, cudaHostRegister
  Device,
};
/// Returns the kind of memory of an address. Freed device memory, and addresses beyond an
/// allocation, are still Device.
Memory memoryOf(const void *address);
/// Is all of [address, address + bytes) inside one live allocation (or registration) of device or
/// pinned memory? Operands of kernels and libraries must be.
bool reachable(const void *address, size_t bytes);
/// "8 bytes into an allocation of 4096 bytes of device memory", "pageable host memory".
std::string describe(const void *address);

/// A scope in which this process may access device memory: for libraries that read at the call, and
/// for tests that check results. Entries run with one.
class DeviceAccess {
public:
  DeviceAccess();
  ~DeviceAccess();
  DeviceAccess(const DeviceAccess &) = delete;
  DeviceAccess &operator=(const DeviceAccess &) = delete;
};

//===-- The schedule ------------------------------------------------------------------------===//

/// Seeds the orders of the following waits. Initially PARTITA_SIMULATED_SEED, or 1.
void setSeed(uint64_t seed);
/// Sets how long a host's wait may find nothing to run before it fails with cudaErrorLaunchTimeout.
/// Initially PARTITA_SIMULATED_TIMEOUT, or 120 seconds.
void setTimeout(double seconds);

/// Counts of the process's activity so far.
struct Counters {
  int64_t enqueued; ///< entries of streams, including nodes of launched graphs
  int64_t ran;
  int64_t graphLaunches;
  int64_t hostWaits; ///< that found something to wait for
};
Counters counters();

} // namespace simulated

#endif // PARTITA_TEST_SIMULATED_QUEUE_H
