// The stream that a kernel runs on, the memory it may use besides its operands, and how it reports
// an invalid index. Needs no CUDA header.

#ifndef PARTITA_RT_CUDA_STREAM_H
#define PARTITA_RT_CUDA_STREAM_H

#include "partita_rt/types.h"

struct CUstream_st;

namespace partita_rt::cuda {

/// An invalid token, label or document. Kernels cannot throw: the first one to find such an index writes it
/// here (memory that host and device share) and treats the index as another rank's.
struct Fault {
  enum Kind : uint32_t { None, EmbeddingId, TakeIndex, Label, Document };
  uint32_t kind;
  int64_t value;
  int64_t position; ///< of the id among the ids, or the row of the label
  int64_t table;    ///< of takeForward and takeBackward, or the sequence of a document
  int64_t bound;    ///< exclusive upper bound
};

/// Throws Error, with the CPU kernels' message, if there is a fault. The host calls it when it
/// waits for a step's results anyway. Of several faults it reports an arbitrary one.
void check(const Fault &fault);

class Matmuls;
class FusedAttention;
class KernelTimes;

/// A stream and its resources. Kernels of one stream run in order, so they share one scratch
/// region, 16-byte aligned: its size must be the max of what shapes.h announces for the calls made.
/// A kernel that needs more throws Error before it is launched.
struct Stream {
  CUstream_st *handle = nullptr; ///< a cudaStream_t
  Fault *fault = nullptr;
  void *scratch = nullptr;
  int64_t scratchBytes = 0;
  Matmuls *matmuls = nullptr; ///< cuBLASLt on this stream, with its workspace and algorithms
  FusedAttention *attention = nullptr; ///< attention by cuDNN where supported; null: own kernels
  KernelTimes *times = nullptr;        ///< called around each launch; null: no timing
};

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_STREAM_H
