// Packs: a few consecutive elements that a thread reads and writes at once, in 16-byte accesses if
// they are aligned and one by one if not. In registers they are float.

#ifndef PARTITA_RT_CUDA_PACK_CUH
#define PARTITA_RT_CUDA_PACK_CUH

#include "partita_rt/cuda/launch.cuh"
#include "partita_rt/kernels.h"

namespace partita_rt::cuda {

/// Whether data are used again in this step. Data read or written once need not evict others from
/// L2.
enum class Use { Again, Once };

template <int kBytes> __device__ inline bool isAligned(const void *p) {
  return reinterpret_cast<uintptr_t>(p) % kBytes == 0;
}

/// The type of an access of this many bytes.
template <int kBytes> struct Access;
template <> struct Access<16> {
  using Type = uint4;
};
template <> struct Access<8> {
  using Type = uint2;
};
template <> struct Access<4> {
  using Type = unsigned;
};

template <typename T, int N>
constexpr int kAccess = N * int(sizeof(T)) < 16 ? N * int(sizeof(T)) : 16;

/// N elements with the same bits as in memory.
template <typename T, int N> struct alignas(kAccess<T, N>) Pack {
  T values[N];
  static constexpr int kParts = N * int(sizeof(T)) / kAccess<T, N>;
};

/// Loads all N elements at p, which is aligned for one access.
template <Use use = Use::Again, typename T, int N>
__device__ inline void loadAligned(Pack<T, N> &pack, const T *p) {
  using Type = typename Access<kAccess<T, N>>::Type;
  auto *from = reinterpret_cast<const Type *>(p);
  auto *to = reinterpret_cast<Type *>(&pack);
#pragma unroll
  for (int i = 0; i < Pack<T, N>::kParts; ++i)
    to[i] = use == Use::Once ? __ldcs(from + i) : from[i];
}

template <Use use = Use::Again, typename T, int N>
__device__ inline void storeAligned(T *p, const Pack<T, N> &pack) {
  using Type = typename Access<kAccess<T, N>>::Type;
  auto *from = reinterpret_cast<const Type *>(&pack);
  auto *to = reinterpret_cast<Type *>(p);
#pragma unroll
  for (int i = 0; i < Pack<T, N>::kParts; ++i)
    if constexpr (use == Use::Once)
      __stcs(to + i, from[i]);
    else
      to[i] = from[i];
}

/// Copies in full accesses, so that the compiler sees words between a load and widen(). Given
/// elements, it would split the words, and wait for them, at the end of each branch that loads.
template <typename T, int N>
__device__ inline void copyWords(Pack<T, N> &to, const Pack<T, N> &from) {
  using Type = typename Access<kAccess<T, N>>::Type;
#pragma unroll
  for (int i = 0; i < Pack<T, N>::kParts; ++i)
    reinterpret_cast<Type *>(&to)[i] = reinterpret_cast<const Type *>(&from)[i];
}

/// x = the pack's elements. X: float, or T itself.
template <typename X, typename T, int N>
__device__ inline void widen(X (&x)[N], const Pack<T, N> &pack) {
  Pack<T, N> bits;
  copyWords(bits, pack);
#pragma unroll
  for (int i = 0; i < N; ++i)
    x[i] = bits.values[i];
}

/// Hides these bits from the compiler's analysis from here on.
template <typename T, int N> __device__ inline void hide([[maybe_unused]] Pack<T, N> &pack) {
#if defined(__CUDA_ARCH__)
  auto *words = reinterpret_cast<unsigned *>(&pack);
#pragma unroll
  for (int i = 0; i < int(sizeof(pack) / sizeof(unsigned)); ++i)
    asm volatile("" : "+r"(words[i]));
#endif
}

/// Loads p[0 .. count) one by one, followed by `rest`.
template <typename T, int N>
__device__ inline void loadSingly(Pack<T, N> &pack, const T *p, int64_t count, T rest) {
  Pack<T, N> bits;
#pragma unroll
  for (int i = 0; i < N; ++i)
    bits.values[i] = i < count ? p[i] : rest;
  copyWords(pack, bits);
}

/// Loads the bits of p[0 .. count), count <= N, followed by `rest`. Uses none of them, so a kernel
/// that loads several packs before it widens the first waits for memory once.
template <Use use = Use::Again, typename T, int N>
__device__ inline void loadBits(Pack<T, N> &pack, const T *p, int64_t count, T rest = T(0)) {
  if (count >= N && isAligned<kAccess<T, N>>(p))
    loadAligned<use>(pack, p);
  else
    loadSingly(pack, p, count, rest);
}

/// x = p[0 .. count), count <= N, followed by `rest`. X: float, or T itself.
template <Use use = Use::Again, typename X, typename T, int N>
__device__ inline void load(X (&x)[N], const T *p, int64_t count, X rest = X(0)) {
  Pack<T, N> pack;
  loadBits<use>(pack, p, count, T(rest));
  widen(x, pack);
}

/// p[0 .. count) = x, rounded once.
template <Use use = Use::Again, typename X, typename T, int N>
__device__ inline void store(T *p, const X (&x)[N], int64_t count) {
  if (count >= N && isAligned<kAccess<T, N>>(p)) {
    Pack<T, N> pack;
#pragma unroll
    for (int i = 0; i < N; ++i)
      pack.values[i] = x[i];
    storeAligned<use>(p, pack);
    return;
  }
#pragma unroll
  for (int i = 0; i < N; ++i)
    if (i < count)
      p[i] = x[i];
}

/// A FloatOr as a kernel receives it: an array of floats or of T, or none.
template <typename T> struct FloatOrArray {
  void *data = nullptr;
  bool isFloat = true;

  FloatOrArray() = default;
  FloatOrArray(FloatOr<T> p) {
    if constexpr (std::is_pointer_v<FloatOr<T>>) {
      data = const_cast<std::remove_const_t<T> *>(p);
    } else {
      data = p.data;
      isFloat = p.isFloat;
    }
  }
  __device__ explicit operator bool() const { return data != nullptr; }
  using Float = std::conditional_t<std::is_const_v<T>, const float, float>;
  __device__ Float *floats() const { return static_cast<Float *>(data); }
  __device__ T *others() const { return static_cast<T *>(data); }

  template <int N> __device__ void loadAt(float (&x)[N], int64_t i, int64_t count) const {
    if (isFloat)
      load(x, floats() + i, count);
    else
      load(x, others() + i, count);
  }
  template <int N> __device__ void storeAt(int64_t i, const float (&x)[N], int64_t count) const {
    if (isFloat)
      store(floats() + i, x, count);
    else
      store(others() + i, x, count);
  }
};

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_PACK_CUH
