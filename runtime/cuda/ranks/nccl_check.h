// Checks NCCL's results, for the host code of this folder.

#ifndef PARTITA_RT_CUDA_RANKS_NCCL_CHECK_H
#define PARTITA_RT_CUDA_RANKS_NCCL_CHECK_H

#include "common/start_marks.h"
#include "partita_rt/types.h"

#include <nccl.h>

namespace partita_rt::cuda {

/// Throws Error with the failed call and NCCL's message. `comm` may be null.
inline void checkNccl(ncclResult_t result, ncclComm_t comm, const char *what) {
  if (result == ncclSuccess || result == ncclInProgress)
    return;
  const char *last = ncclGetLastError(comm);
  if (result == ncclRemoteError || result == ncclSystemError)
    noteLostRank();
  fail("%s: %s%s%s", what, ncclGetErrorString(result), last && *last ? ": " : "", last ? last : "");
}

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_RANKS_NCCL_CHECK_H
