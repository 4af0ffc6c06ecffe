// All that an emitted CUDA program may call, and the templates that its kernels are made of.

#ifndef PARTITA_RT_PARTITA_RT_CUDA_H
#define PARTITA_RT_PARTITA_RT_CUDA_H

#include "partita_rt/partita_rt.h"

#include "partita_rt/cuda/comm.h"
#include "partita_rt/cuda/device.h"
#include "partita_rt/cuda/host_update.h"
#include "partita_rt/cuda/kernels.h"
#include "partita_rt/cuda/map.cuh"
#include "partita_rt/cuda/table.cuh"
#include "partita_rt/cuda/update.cuh"

#endif // PARTITA_RT_PARTITA_RT_CUDA_H
