// Where a kernel runs, what memory it may use beside its operands, and how it says that an index is
// wrong. Needs no CUDA header.

#ifndef PARTITA_RT_CUDA_STREAM_H
#define PARTITA_RT_CUDA_STREAM_H

#include "partita_rt/types.h"

struct CUstream_st;

namespace partita_rt::cuda {

/// A token or label that is none. Kernels cannot throw: the first one to meet such an index writes
/// it here (memory that host and device share) and goes on as if it were another rank's.
struct Fault {
  enum Kind : uint32_t { None, EmbeddingId, TakeIndex, Label };
  uint32_t kind;
  int64_t value;
  int64_t position; ///< of the id among the ids, or the row of the label
  int64_t table;    ///< of takeForward and takeBackward
  int64_t bound;    ///< what it must be below
};

/// Throws Error, in the words of the CPU's kernels, if there is a fault. The host calls it where it
/// waits for a step's results anyway. Which fault it is, of several, is left to chance.
void check(const Fault &fault);

class Products;
class FusedAttention;
class KernelTimes;

/// A stream and what goes with it. Kernels of one stream run in order, so one scratch region serves
/// them all: it must have the largest of the sizes that shapes.h announces for the calls made, and
/// is 16-byte aligned. A kernel that needs more throws Error before it is launched.
struct Stream {
  CUstream_st *handle = nullptr; ///< a cudaStream_t
  Fault *fault = nullptr;
  void *scratch = nullptr;
  int64_t scratchBytes = 0;
  Products *products =
      nullptr; ///< matmuls on this stream: cuBLASLt, its workspace, algorithms
  FusedAttention *attention = nullptr; ///< attention by cuDNN where it can; null: own kernels
  KernelTimes *times = nullptr;        ///< called around each launch; null: nobody times them
};

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_STREAM_H
