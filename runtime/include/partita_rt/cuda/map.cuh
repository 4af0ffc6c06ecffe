// Launches emitted kernels: the arithmetic of one element, which the compiler prints, over all elements
// of its operands.
//
//     struct map_add_gelu_element {
//       __device__ void operator()(float &out, float a, float b) const { ... }
//     };
//     mapElements(stream, {ni, nj}, map_add_gelu_element(), each(out, {out_i}), each(a, {a_i}),
//                 same(b, {b_i}));
//
// A thread handles a pack of consecutive elements of the innermost loop of every operand, in
// 16-byte accesses if they are aligned; an operand that repeats along that loop is read once.
// 16-bit elements are floats between load and store, and rounded once. All operands are read before
// anything is written, so an output may be an operand of the same layout. Memory moved: each
// operand once, no more.

#ifndef PARTITA_RT_CUDA_MAP_CUH
#define PARTITA_RT_CUDA_MAP_CUH

#include "partita_rt/cuda/divisor.cuh"
#include "partita_rt/cuda/elementwise.cuh"

namespace partita_rt::cuda {

/// The type of an element of T in registers.
template <typename T>
using Lane = std::conditional_t<std::is_same_v<std::remove_const_t<T>, Half> ||
                                    std::is_same_v<std::remove_const_t<T>, BFloat16>,
                                float, std::remove_const_t<T>>;

/// An operand: a const T is read; others are written, and also read if `kUpdated`. Its stride is
/// `kStep` elements in the innermost loop, and `strides` in the others.
template <typename T, int kStep, int kOuter, bool kUpdated = false> struct Operand {
  T *data;
  int64_t strides[kOuter > 0 ? kOuter : 1];

  using Type = T;
  static constexpr int step = kStep, outer = kOuter;
  static constexpr bool isRead = std::is_const_v<T> || kUpdated, isWritten = !std::is_const_v<T>;
};

template <typename T> Operand<T, 1, 0> each(T *data) { return {data, {}}; }
template <typename T> Operand<T, 0, 0> same(T *data) { return {data, {}}; }
template <typename T> Operand<T, 1, 0, true> updated(T *data) { return {data, {}}; }
template <typename T, size_t kOuter>
Operand<T, 1, int(kOuter)> each(T *data, const int64_t (&strides)[kOuter]) {
  Operand<T, 1, int(kOuter)> operand{data, {}};
  for (size_t i = 0; i < kOuter; ++i)
    operand.strides[i] = strides[i];
  return operand;
}
template <typename T, size_t kOuter>
Operand<T, 0, int(kOuter)> same(T *data, const int64_t (&strides)[kOuter]) {
  Operand<T, 0, int(kOuter)> operand{data, {}};
  for (size_t i = 0; i < kOuter; ++i)
    operand.strides[i] = strides[i];
  return operand;
}

/// Loops around a kernel, outermost first.
template <int kLoops> struct LoopNest {
  Divisor sizes[kLoops];
  Divisor packs; ///< per row, the innermost loop
};

/// The start of a thread's pack.
template <int kLoops> struct PackRange {
  int64_t outer[kLoops];
  int64_t first; ///< in the innermost loop
  int count;

  __device__ PackRange(int64_t first, int count) : outer(), first(first), count(count) {}
  __device__ PackRange(const LoopNest<kLoops> &nest, int64_t pack, int packed) {
    int64_t row = kLoops == 1 ? 0 : nest.packs.quotient(pack);
    first = (pack - row * nest.packs) * packed;
    count = int(least(nest.sizes[kLoops - 1] - first, packed));
#pragma unroll
    for (int loop = kLoops - 2; loop >= 0; --loop) {
      int64_t above = loop == 0 ? 0 : nest.sizes[loop].quotient(row);
      outer[loop] = row - above * nest.sizes[loop];
      row = above;
    }
  }
};

/// A thread's pack of an operand: loaded by the constructor and first used by widen(), so that the
/// loads of all operands are issued before the first one is waited for.
template <int N, typename Operand> struct Held {
  using T = typename Operand::Type;
  T *at;
  Pack<std::remove_const_t<T>, N> bits;
  Lane<T> values[Operand::step ? N : 1];

  template <int kLoops>
  __device__ Held(const Operand &operand, const PackRange<kLoops> &range)
      : at(operand.data + Operand::step * range.first) {
#pragma unroll
    for (int loop = 0; loop < Operand::outer; ++loop)
      at += range.outer[loop] * operand.strides[loop];
    if constexpr (Operand::isRead && Operand::step)
      loadBits(bits, at, range.count);
    else if constexpr (Operand::isRead)
      values[0] = Lane<T>(*at);
  }
  __device__ void widen() {
    if constexpr (Operand::isRead && Operand::step)
      cuda::widen(values, bits);
  }
  __device__ Lane<T> &operator[](int i) { return values[Operand::step ? i : 0]; }
  __device__ void storeResult(int count) const {
    if constexpr (Operand::isWritten)
      store(at, values, count);
  }
};

template <int N, typename Element, typename... Packs>
__device__ void mapPack(const Element &element, int count, Packs... packs) {
  (packs.widen(), ...);
#pragma unroll
  for (int i = 0; i < N; ++i)
    element(packs[i]...); // elements beyond `count` are not stored
  (packs.storeResult(count), ...);
}

template <int N, int kLoops, typename Element, typename... Operands>
__global__ void __launch_bounds__(kElementwiseThreads)
    mapPacks(LoopNest<kLoops> nest, int64_t packs, Element element, Operands... operands) {
  int64_t pack = globalThread();
  if (pack >= packs)
    return;
  PackRange<kLoops> range(nest, pack, N);
  mapPack<N>(element, range.count, Held<N, Operands>(operands, range)...);
}

/// Elements per pack: one 16-byte access of the smallest floats.
template <typename... T> constexpr int kMapPack = (std::is_same_v<T, Lane<T>> && ...) ? 4 : 8;

/// Calls element(out..., in...) for all elements of the loops.
template <size_t kLoops, typename Element, typename... Operands>
void mapElements(const Stream &stream, const int64_t (&sizes)[kLoops], const Element &element,
                 const Operands &...operands) {
  constexpr int N = kMapPack<std::remove_const_t<typename Operands::Type>...>;
  LoopNest<int(kLoops)> nest{};
  nest.packs = ceilDiv(sizes[kLoops - 1], N);
  int64_t packs = nest.packs;
  for (size_t loop = 0; loop < kLoops; ++loop) {
    nest.sizes[loop] = sizes[loop];
    packs *= loop + 1 < kLoops ? sizes[loop] : 1;
  }
  if (packs > 0)
    PARTITA_RT_LAUNCH((mapPacks<N, int(kLoops), Element, Operands...>),
                      gridOf(ceilDiv(packs, kElementwiseThreads)), kElementwiseThreads, 0, stream,
                      nest, packs, element, operands...);
}

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_MAP_CUH
