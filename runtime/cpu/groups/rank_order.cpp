// Sums in rank order (rank_order.h).

#include "cpu/groups/rank_order.h"
#include "cpu/kernels/vector.h"

namespace partita_rt {

namespace {

/// S: the type of additions, T itself or, for 16-bit elements, float.
template <typename T, typename S>
void addSource(S *__restrict sum, const T *__restrict x, int64_t n, Reduce reduce) {
  switch (reduce) {
  case Reduce::Sum:
    for (int64_t i = 0; i < n; ++i)
      sum[i] += x[i];
    break;
  case Reduce::Max:
    for (int64_t i = 0; i < n; ++i) // NaN wins, on either side
      sum[i] = (sum[i] > x[i] || sum[i] != sum[i]) ? sum[i] : S(x[i]);
    break;
  }
}

/// Blocks that stay in the L1 cache while the ranks' contributions are added.
constexpr int64_t kBlock = 2048;

template <typename T, typename S> struct Sums {
  static const T *at(const char *source, int64_t begin) {
    return reinterpret_cast<const T *>(source) + begin;
  }
  static void all(char *out, const char *const *sources, int ranks, int64_t count, Reduce reduce) {
    alignas(64) S sum[kBlock];
    for (int64_t begin = 0; begin < count; begin += kBlock) {
      int64_t n = std::min(kBlock, count - begin);
      convertArray(sum, at(sources[0], begin), n);
      for (int r = 1; r < ranks; ++r)
        addSource(sum, at(sources[r], begin), n, reduce);
      convertArray(reinterpret_cast<T *>(out) + begin, sum, n);
    }
  }
  static void add(char *sums, bool begins, const char *const *sources, int ranks, int64_t count,
                  Reduce reduce) {
    for (int64_t begin = 0; begin < count; begin += kBlock) {
      int64_t n = std::min(kBlock, count - begin);
      S *sum = reinterpret_cast<S *>(sums) + begin;
      if (begins)
        convertArray(sum, at(sources[0], begin), n);
      for (int r = begins ? 1 : 0; r < ranks; ++r)
        addSource(sum, at(sources[r], begin), n, reduce);
    }
  }
  static void round(char *out, const char *sums, int64_t count) {
    convertArray(reinterpret_cast<T *>(out), reinterpret_cast<const S *>(sums), count);
  }
};

/// Calls body(Sums<T, S>()) for the types of elements and sums.
template <typename Body> void forType(DType dtype, Body body) {
  switch (dtype) {
  case DType::Float32:
    return body(Sums<float, float>());
  case DType::Float16:
    return body(Sums<Half, float>());
  case DType::BFloat16:
    return body(Sums<BFloat16, float>());
  case DType::Float64:
    return body(Sums<double, double>());
  case DType::Int32:
    return body(Sums<int32_t, int32_t>());
  case DType::Int64:
    return body(Sums<int64_t, int64_t>());
  default:
    fail("collectives cannot reduce %s", nameOf(dtype));
  }
}

} // namespace

void reduceInRankOrder(char *out, const char *const *sources, int ranks, int64_t count, DType dtype,
                       Reduce reduce) {
  forType(dtype, [&](auto sums) { sums.all(out, sources, ranks, count, reduce); });
}

void addInRankOrder(char *to, bool begins, const char *const *sources, int ranks, int64_t count,
                    DType dtype, Reduce reduce) {
  forType(dtype, [&](auto sums) { sums.add(to, begins, sources, ranks, count, reduce); });
}

void roundSums(char *out, const char *from, int64_t count, DType dtype) {
  forType(dtype, [&](auto sums) { sums.round(out, from, count); });
}

} // namespace partita_rt
