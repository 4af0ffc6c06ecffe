// Functions that run both on the host and in kernels: PARTITA_RT_HOST_DEVICE expands to nothing
// outside nvcc.

#ifndef PARTITA_RT_HOST_DEVICE_H
#define PARTITA_RT_HOST_DEVICE_H

#if defined(__CUDACC__)
#define PARTITA_RT_HOST_DEVICE __host__ __device__
#else
#define PARTITA_RT_HOST_DEVICE
#endif

#endif // PARTITA_RT_HOST_DEVICE_H
