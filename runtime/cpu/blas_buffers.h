// OpenBLAS's packing buffers. OpenBLAS maps one for every thread that is inside of a product, the
// first time that there are so many, and tries again for ever where the system refuses: a run with
// too little address space would stand still without a word.

#ifndef PARTITA_RT_CPU_BLAS_BUFFERS_H
#define PARTITA_RT_CPU_BLAS_BUFFERS_H

#include <string>
#include <vector>

namespace partita_rt {

/// The words that the process was started with.
std::vector<std::string> commandLine();

/// OpenBLAS starts a thread per core as soon as it is loaded, each with a buffer, of which a rank
/// needs none. Where address space is limited the process starts itself again without them. To be
/// called before anything else.
void startWithoutBlasThreads();

/// Has OpenBLAS map the buffers of this many ranks with so many threads each, which it keeps.
/// Throws Error where they do not fit.
void takeBlasBuffers(int ranks, int threads);

/// " (ulimit -v allows ... bytes of address space, ... are in use)", or "" where nothing is
/// limited.
std::string addressSpaceText();

} // namespace partita_rt

#endif // PARTITA_RT_CPU_BLAS_BUFFERS_H
