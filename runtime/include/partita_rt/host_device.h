// Functions that run on the host and in kernels alike: PARTITA_RT_HOST_DEVICE means nothing outside
// nvcc.

#ifndef PARTITA_RT_HOST_DEVICE_H
#define PARTITA_RT_HOST_DEVICE_H

#if defined(__CUDACC__)
#define PARTITA_RT_HOST_DEVICE __host__ __device__
#else
#define PARTITA_RT_HOST_DEVICE
#endif

#endif // PARTITA_RT_HOST_DEVICE_H
