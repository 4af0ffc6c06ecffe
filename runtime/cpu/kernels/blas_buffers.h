// OpenBLAS's packing buffers. OpenBLAS maps one per thread inside a matmul, whenever there are more
// such threads than before, and retries forever if the system refuses: without this, a run with too
// little address space would hang silently.

#ifndef PARTITA_RT_CPU_KERNELS_BLAS_BUFFERS_H
#define PARTITA_RT_CPU_KERNELS_BLAS_BUFFERS_H

#include <cstdint>

namespace partita_rt {

/// Restarts the process without OpenBLAS's threads if address space is limited. OpenBLAS starts a
/// thread per core as soon as it is loaded, each with a buffer, and ranks need none of them. Call
/// this before anything else.
void startWithoutBlasThreads();

/// Has OpenBLAS map a buffer for each of these ranks and each further thread of the process, and
/// keep them (beyond 64 only checks that they fit now). Throws Error if they do not fit.
void takeBlasBuffers(int ranks, int threads);

/// Returns the bytes of these buffers that are in memory: those that matmuls have packed into so
/// far.
int64_t blasBuffersResident();

} // namespace partita_rt

#endif // PARTITA_RT_CPU_KERNELS_BLAS_BUFFERS_H
