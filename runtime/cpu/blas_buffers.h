// OpenBLAS's packing buffers. OpenBLAS maps one for every thread that is inside of a matmul, the
// first time that there are so many, and tries again for ever where the system refuses: a run with
// too little address space would stand still without a word.

#ifndef PARTITA_RT_CPU_BLAS_BUFFERS_H
#define PARTITA_RT_CPU_BLAS_BUFFERS_H

#include <cstdint>

namespace partita_rt {

/// OpenBLAS starts a thread per core as soon as it is loaded, each with a buffer, of which a rank
/// needs none. Where address space is limited the process starts itself again without them. To be
/// called before anything else.
void startWithoutBlasThreads();

/// Has OpenBLAS map a buffer for each of these ranks and for each further thread of the process, and
/// keep them. Throws Error where they do not fit.
void takeBlasBuffers(int ranks, int threads);

/// Bytes of these buffers that are in memory: what matmuls have packed into them so far.
int64_t blasBuffersResident();

} // namespace partita_rt

#endif // PARTITA_RT_CPU_BLAS_BUFFERS_H
