// All that an emitted CUDA program may call. Its kernels are made of templates that stand beside
// the runtime's own, so this header wants runtime/ itself among the include folders, too.

#ifndef PARTITA_RT_PARTITA_RT_CUDA_H
#define PARTITA_RT_PARTITA_RT_CUDA_H

#include "partita_rt/partita_rt.h"

#include "partita_rt/cuda/comm.h"
#include "partita_rt/cuda/device.h"
#include "partita_rt/cuda/host_update.h"
#include "partita_rt/cuda/kernels.h"

#include "cuda/kernels/map.cuh"
#include "cuda/kernels/table.cuh"
#include "cuda/kernels/update.cuh"

#endif // PARTITA_RT_PARTITA_RT_CUDA_H
