// Sums in rank order (rank_order.h).

#include "cpu/rank_order.h"
#include "cpu/vector.h"

namespace partita_rt {

namespace {

/// S: the type of additions, T itself or, for 16-bit elements, float.
template <typename T, typename S = T>
void reduceTyped(T *out, const char *const *sources, int ranks, int64_t count, Reduce reduce) {
  // Blocks that stay in the L1 cache while the ranks' contributions are added.
  constexpr int64_t kBlock = 2048;
  alignas(64) S sum[kBlock];
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    int64_t n = std::min(kBlock, count - begin);
    convertArray(sum, reinterpret_cast<const T *>(sources[0]) + begin, n);
    for (int r = 1; r < ranks; ++r) {
      const T *__restrict x = reinterpret_cast<const T *>(sources[r]) + begin;
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
    convertArray(out + begin, sum, n);
  }
}

} // namespace

void reduceInRankOrder(char *out, const char *const *sources, int ranks, int64_t count, DType dtype,
                       Reduce reduce) {
  switch (dtype) {
  case DType::Float32:
    return reduceTyped(reinterpret_cast<float *>(out), sources, ranks, count, reduce);
  case DType::Float16:
    return reduceTyped<Half, float>(reinterpret_cast<Half *>(out), sources, ranks, count, reduce);
  case DType::BFloat16:
    return reduceTyped<BFloat16, float>(reinterpret_cast<BFloat16 *>(out), sources, ranks, count,
                                        reduce);
  case DType::Float64:
    return reduceTyped(reinterpret_cast<double *>(out), sources, ranks, count, reduce);
  case DType::Int32:
    return reduceTyped(reinterpret_cast<int32_t *>(out), sources, ranks, count, reduce);
  case DType::Int64:
    return reduceTyped(reinterpret_cast<int64_t *>(out), sources, ranks, count, reduce);
  default:
    fail("collectives cannot reduce %s", nameOf(dtype));
  }
}

Range shareOf(int64_t n, int part, int parts) {
  int64_t lines = (n + 15) / 16;
  auto at = [&](int64_t p) { return std::min(n, lines * p / parts * 16); };
  return {at(part), part + 1 == parts ? n : at(part + 1)};
}

} // namespace partita_rt
