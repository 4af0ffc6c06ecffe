// gemm, gemmBias, gemmBatched and matmuls with epilogues (kernels.h): each is one call of cuBLASLt
// (matmuls.h), except for
//   * types that it does not multiply: operands are widened into scratch memory and multiplied as
//     floats, and a 16-bit result is rounded from there;
//   * sums over nothing (k == 0), which it refuses: a kernel computes C = beta C + bias;
//   * epilogues for which it has no kernel at a shape, or a slower one: the matmul, then a kernel.

#include "partita_rt/cuda/kernels.h"

#include "cuda/matmuls/matmul_parts.h"
#include "cuda/matmuls/matmuls.h"

namespace partita_rt::cuda {

namespace {

template <typename T> constexpr bool kIsFloat = std::is_same_v<T, float>;

/// An allocator for the stream's scratch memory.
class Scratch {
public:
  Scratch(const Stream &stream, int64_t bytes, const char *what)
      : next(static_cast<char *>(stream.scratch)) {
    if (bytes > stream.scratchBytes)
      fail("%s: %lld bytes of scratch memory, but the stream has %lld", what, (long long)bytes,
           (long long)stream.scratchBytes);
  }
  template <typename T> T *take(int64_t elements) {
    T *slice = reinterpret_cast<T *>(next);
    next += aligned(elements * int64_t(sizeof(T)));
    return slice;
  }

private:
  char *next;
};

int64_t alignmentOf(const void *address) {
  auto bits = reinterpret_cast<uintptr_t>(address);
  int64_t bytes = 16;
  while (bits % uint64_t(bytes) != 0)
    bytes /= 2;
  return bytes;
}

Matmuls &matmulsOf(const Stream &stream) {
  if (!stream.matmuls)
    fail("a stream without matmuls");
  return *stream.matmuls;
}

/// Runs the matmul, with the operands' alignments added to the shape.
bool multiply(const Stream &stream, MatmulShape shape, const MatmulOperands &operands,
              const Apart &apart = {}) {
  const void *addresses[] = {operands.a,      operands.b,   operands.c,
                             operands.vector, operands.aux, operands.addend};
  for (int i = 0; i < 6; ++i)
    shape.alignment[i] = alignmentOf(addresses[i]);
  return matmulsOf(stream).multiply(stream, shape, operands, apart);
}

/// Runs one kernel if that is possible and not slower; else `apart`.
void multiplyOr(const Stream &stream, const MatmulShape &shape, const MatmulOperands &operands,
                const Apart &apart) {
  if (shape.k == 0 || !multiply(stream, shape, operands, apart))
    apart(stream);
}

template <typename A, typename B, typename C>
MatmulShape shapeOf(Trans transA, Trans transB, int64_t m, int64_t n, int64_t k, const A *,
                    int64_t lda, const B *, int64_t ldb, const C *, int64_t ldc) {
  MatmulShape shape{};
  shape.a = kDTypeOf<A>;
  shape.b = kDTypeOf<B>;
  shape.c = kDTypeOf<C>;
  shape.transA = transA;
  shape.transB = transB;
  shape.m = m;
  shape.n = n;
  shape.k = k;
  shape.lda = lda;
  shape.ldb = ldb;
  shape.ldc = ldc;
  return shape;
}

/// Returns the matrix stored [rows, columns] in float, in place or in scratch memory.
template <typename T>
const float *widened(const Stream &stream, Scratch &scratch, const T *x, int64_t rows,
                     int64_t columns, int64_t &ld) {
  if constexpr (kIsFloat<T>) {
    return x;
  } else {
    auto *to = scratch.take<float>(rows * columns);
    convertRows(stream, to, columns, x, ld, rows, columns);
    ld = columns;
    return to;
  }
}

/// C = alpha op(A) op(B) + beta C (+ bias, float), for types that cuBLASLt does not multiply.
template <typename A, typename B, typename C>
void gemmInFloat(const Stream &stream, Scratch &scratch, Trans transA, Trans transB, int64_t m,
                 int64_t n, int64_t k, float alpha, const A *a, int64_t lda, const B *b,
                 int64_t ldb, float beta, const float *bias, C *c, int64_t ldc) {
  bool ta = transA == Trans::Yes, tb = transB == Trans::Yes;
  const float *left = widened(stream, scratch, a, ta ? k : m, ta ? m : k, lda);
  const float *right = widened(stream, scratch, b, tb ? n : k, tb ? k : n, ldb);
  float *result;
  int64_t ld = ldc;
  if constexpr (kIsFloat<C>) {
    result = c;
  } else {
    result = scratch.take<float>(m * n);
    ld = n;
    if (beta != 0.0f)
      convertRows(stream, result, ld, c, ldc, m, n);
  }
  if (bias)
    gemmBias(stream, transA, transB, m, n, k, left, lda, right, ldb, bias, result, ld);
  else
    gemm(stream, transA, transB, m, n, k, alpha, left, lda, right, ldb, beta, result, ld);
  if constexpr (!kIsFloat<C>)
    convertRows(stream, c, ldc, result, ld, m, n);
}

/// C = op(A) op(B) + beta addend + bias, the addend and C with strides of their own; the bias may be
/// null.
template <typename C>
void multiplyAdding(const Stream &stream, MatmulShape shape, MatmulOperands operands, const C *bias,
                    int64_t ldAddend) {
  auto *c = static_cast<C *>(operands.c);
  const auto *addend = static_cast<const C *>(operands.addend);
  if (addend && addend != c)
    shape.ldAddend = ldAddend;
  MatmulShape plain = shape;
  auto apart = [=](const Stream &on) {
    if (plain.k > 0)
      multiply(on, plain, operands);
    else if (addend != c)
      convertRows(on, c, plain.ldc, addend, ldAddend, plain.m, plain.n);
    if (bias)
      addRow(on, c, plain.ldc, bias, plain.m, plain.n);
  };
  // With 8-bit operands and a result in float, cuBLASLt takes a bias in bfloat16.
  if (!bias || (kIsFloat<C> && isScaled(shape)))
    return apart(stream);
  shape.epilogue = Epilogue::Bias;
  operands.vector = const_cast<C *>(bias);
  multiplyOr(stream, shape, operands, apart);
}

/// Returns the bias in T, the type of its matmul.
template <typename T, typename V>
const T *biasIn(const Stream &stream, Scratch &scratch, const V *bias, int64_t n) {
  if constexpr (std::is_same_v<T, V>) {
    return bias;
  } else {
    T *to = scratch.take<T>(n);
    convert(stream, to, bias, n);
    return to;
  }
}

} // namespace

//===-- Kernels as on the CPU ---------------------------------------------------------------===//

template <typename A, typename B, typename C>
void gemm(const Stream &stream, Trans transA, Trans transB, int64_t m, int64_t n, int64_t k,
          float alpha, const A *a, int64_t lda, const B *b, int64_t ldb, float beta, C *c,
          int64_t ldc) {
  if (m == 0 || n == 0)
    return;
  if (k == 0)
    return scaleRows(stream, c, ldc, beta, m, n);
  if constexpr (isDirect(kDTypeOf<A>, kDTypeOf<B>, kDTypeOf<C>)) {
    multiply(stream, shapeOf(transA, transB, m, n, k, a, lda, b, ldb, c, ldc),
             {alpha, a, b, beta, c});
  } else {
    Scratch scratch(stream, gemmScratch(kDTypeOf<A>, kDTypeOf<B>, kDTypeOf<C>, m, n, k), "gemm");
    gemmInFloat(stream, scratch, transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, nullptr, c,
                ldc);
  }
}

template <typename A, typename B, typename V, typename C>
void gemmBias(const Stream &stream, Trans transA, Trans transB, int64_t m, int64_t n, int64_t k,
              const A *a, int64_t lda, const B *b, int64_t ldb, const V *bias, C *c, int64_t ldc) {
  if (m == 0 || n == 0)
    return;
  if (k == 0)
    return convertRows(stream, c, ldc, bias, 0, m, n);
  Scratch scratch(stream,
                  gemmBiasScratch(kDTypeOf<A>, kDTypeOf<B>, kDTypeOf<V>, kDTypeOf<C>, m, n, k),
                  "gemmBias");
  if constexpr (isDirect(kDTypeOf<A>, kDTypeOf<B>, kDTypeOf<C>)) {
    MatmulShape shape = shapeOf(transA, transB, m, n, k, a, lda, b, ldb, c, ldc);
    shape.epilogue = Epilogue::Bias;
    const C *vector = biasIn<C>(stream, scratch, bias, n);
    multiplyOr(stream, shape, {1.0f, a, b, 0.0f, c, const_cast<C *>(vector)},
               [=](const Stream &on) {
                 convertRows(on, c, ldc, vector, 0, m, n);
                 gemm(on, transA, transB, m, n, k, 1.0f, a, lda, b, ldb, 1.0f, c, ldc);
               });
  } else {
    const float *vector = biasIn<float>(stream, scratch, bias, n);
    gemmInFloat(stream, scratch, transA, transB, m, n, k, 1.0f, a, lda, b, ldb, 0.0f, vector, c,
                ldc);
  }
}

template <typename A, typename B, typename C>
void gemmBatched(const Stream &stream, Trans transA, Trans transB, int64_t batch, int64_t m,
                 int64_t n, int64_t k, float alpha, const A *a, int64_t lda, int64_t strideA,
                 const B *b, int64_t ldb, int64_t strideB, float beta, C *c, int64_t ldc,
                 int64_t strideC) {
  if constexpr (isDirect(kDTypeOf<A>, kDTypeOf<B>, kDTypeOf<C>))
    if (batch > 0 && m > 0 && n > 0 && k > 0) {
      MatmulShape shape = shapeOf(transA, transB, m, n, k, a, lda, b, ldb, c, ldc);
      shape.batch = batch;
      if (batch > 1) {
        shape.strideA = strideA;
        shape.strideB = strideB;
        shape.strideC = strideC;
      }
      multiply(stream, shape, {alpha, a, b, beta, c});
      return;
    }
  for (int64_t i = 0; i < batch; ++i)
    gemm(stream, transA, transB, m, n, k, alpha, a + i * strideA, lda, b + i * strideB, ldb, beta,
         c + i * strideC, ldc);
}

//===-- Matmuls with epilogues --------------------------------------------------------------===//

template <typename T>
void gemmBiasGelu(const Stream &stream, Trans transA, Trans transB, int64_t m, int64_t n, int64_t k,
                  const T *a, int64_t lda, const T *b, int64_t ldb, const T *bias, T *c,
                  int64_t ldc, OrNull<T *> aux, int64_t ldAux) {
  if (m == 0 || n == 0)
    return;
  MatmulShape shape = shapeOf(transA, transB, m, n, k, a, lda, b, ldb, c, ldc);
  shape.epilogue = aux ? Epilogue::BiasGeluAux : Epilogue::BiasGelu;
  shape.ldAux = ldAux;
  multiplyOr(stream, shape, {1.0f, a, b, 0.0f, c, const_cast<T *>(bias), aux},
             [=](const Stream &on) {
               T *sum = aux ? aux : c;
               int64_t ldSum = aux ? ldAux : ldc;
               gemmBias(on, transA, transB, m, n, k, a, lda, b, ldb, bias, sum, ldSum);
               geluRows(on, c, ldc, sum, ldSum, m, n);
             });
}

template <typename T>
void gemmGeluGrad(const Stream &stream, Trans transA, Trans transB, int64_t m, int64_t n, int64_t k,
                  const T *a, int64_t lda, const T *b, int64_t ldb, const T *aux, int64_t ldAux,
                  T *c, int64_t ldc, OrNull<T *> sums) {
  if (n == 0 || (m == 0 && !sums))
    return;
  if (m == 0)
    return columnSum(stream, sums, c, m, n, ldc);
  MatmulShape shape = shapeOf(transA, transB, m, n, k, a, lda, b, ldb, c, ldc);
  shape.epilogue = sums ? Epilogue::GeluGradSums : Epilogue::GeluGrad;
  shape.ldAux = ldAux;
  multiplyOr(stream, shape, {1.0f, a, b, 0.0f, c, sums, const_cast<T *>(aux)},
             [=](const Stream &on) {
               if (sums) { // the matmul may still include the slope
                 gemmGeluGrad(on, transA, transB, m, n, k, a, lda, b, ldb, aux, ldAux, c, ldc);
                 return columnSum(on, sums, c, m, n, ldc);
               }
               gemm(on, transA, transB, m, n, k, 1.0f, a, lda, b, ldb, 0.0f, c, ldc);
               geluGradRows(on, c, ldc, aux, ldAux, m, n);
             });
}

template <typename T>
void gemmAdd(const Stream &stream, Trans transA, Trans transB, int64_t m, int64_t n, int64_t k,
             const T *a, int64_t lda, const T *b, int64_t ldb, OrNull<const T *> bias,
             const T *addend, int64_t ldAddend, T *c, int64_t ldc) {
  if (m == 0 || n == 0)
    return;
  MatmulOperands operands{1.0f, a, b, 1.0f, c};
  operands.addend = addend;
  multiplyAdding(stream, shapeOf(transA, transB, m, n, k, a, lda, b, ldb, c, ldc), operands, bias,
                 ldAddend);
}

template <typename T, typename G>
void gemmBiasGrad(const Stream &stream, Cotangent cotangent, int64_t m, int64_t n, int64_t k,
                  const T *a, int64_t lda, const T *b, int64_t ldb, G *c, int64_t ldc, G *sums,
                  Write write) {
  bool first = cotangent == Cotangent::A;
  int64_t count = first ? m : n;
  float beta = write == Write::Add ? 1.0f : 0.0f;
  auto apart = [=](const Stream &on) {
    gemm(on, Trans::Yes, Trans::No, m, n, k, 1.0f, a, lda, b, ldb, beta, c, ldc);
    columnSum(on, sums, first ? a : b, k, count, first ? lda : ldb, write);
  };
  if (m == 0 || n == 0)
    return apart(stream);
  Scratch scratch(stream, gemmBiasGradScratch(count, k), "gemmBiasGrad");
  MatmulShape shape = shapeOf(Trans::Yes, Trans::No, m, n, k, a, lda, b, ldb, c, ldc);
  shape.epilogue = first ? Epilogue::SumA : Epilogue::SumB;
  if (write == Write::Set)
    return multiplyOr(stream, shape, {1.0f, a, b, beta, c, sums}, apart);
  // cuBLASLt cannot add to sums.
  G *made = scratch.take<G>(count);
  if (k > 0 && multiply(stream, shape, {1.0f, a, b, beta, c, made}, apart))
    accumulate(stream, sums, made, count);
  else
    apart(stream);
}

//===-- Matmuls in 8 bits -------------------------------------------------------------------===//

template <typename A, typename B, typename C>
void scaledGemm(const Stream &stream, Trans transA, Trans transB, int64_t m, int64_t n, int64_t k,
                const A *a, const float *scaleA, const B *b, const float *scaleB, C *c,
                OrNull<const C *> bias, OrNull<const C *> addend) {
  if (transA == Trans::Yes || transB == Trans::No)
    fail("scaledGemm: a GPU multiplies 8-bit operands only along k, A by the transpose of B");
  if (m == 0 || n == 0)
    return;
  MatmulOperands operands{1.0f, a, b, addend ? 1.0f : 0.0f, c};
  operands.addend = addend;
  operands.scaleA = scaleA;
  operands.scaleB = scaleB;
  multiplyAdding(stream, shapeOf(transA, transB, m, n, k, a, k, b, k, c, n), operands, bias, n);
}

//===-- Instances ---------------------------------------------------------------------------===//

#define GEMM(A, B, C)                                                                              \
  template void gemm(const Stream &, Trans, Trans, int64_t, int64_t, int64_t, float, const A *,    \
                     int64_t, const B *, int64_t, float, C *, int64_t);                            \
  template void gemmBatched(const Stream &, Trans, Trans, int64_t, int64_t, int64_t, int64_t,      \
                            float, const A *, int64_t, int64_t, const B *, int64_t, int64_t,       \
                            float, C *, int64_t, int64_t);
#define GEMM_BIAS(A, B, V, C)                                                                      \
  template void gemmBias(const Stream &, Trans, Trans, int64_t, int64_t, int64_t, const A *,       \
                         int64_t, const B *, int64_t, const V *, C *, int64_t);
#define GEMMS(A, B, C, T) GEMM(A, B, C) GEMM_BIAS(A, B, float, C) GEMM_BIAS(A, B, T, C)
#define WITH_MORE(T)                                                                               \
  template void gemmBiasGelu(const Stream &, Trans, Trans, int64_t, int64_t, int64_t, const T *,   \
                             int64_t, const T *, int64_t, const T *, T *, int64_t, OrNull<T *>,    \
                             int64_t);                                                             \
  template void gemmGeluGrad(const Stream &, Trans, Trans, int64_t, int64_t, int64_t, const T *,   \
                             int64_t, const T *, int64_t, const T *, int64_t, T *, int64_t,        \
                             OrNull<T *>);                                                         \
  template void gemmAdd(const Stream &, Trans, Trans, int64_t, int64_t, int64_t, const T *,        \
                        int64_t, const T *, int64_t, OrNull<const T *>, const T *, int64_t, T *,   \
                        int64_t);
#define BIAS_GRAD(G, T)                                                                            \
  template void gemmBiasGrad(const Stream &, Cotangent, int64_t, int64_t, int64_t, const T *,      \
                             int64_t, const T *, int64_t, G *, int64_t, G *, Write);
#define COMBINATIONS(T)                                                                            \
  GEMMS(T, T, T, T)                                                                                \
  GEMMS(T, T, float, T)                                                                            \
  GEMMS(T, float, T, T)                                                                            \
  GEMMS(T, float, float, T)                                                                        \
  GEMMS(float, T, T, T)                                                                            \
  GEMMS(float, T, float, T)                                                                        \
  GEMMS(float, float, T, T)                                                                        \
  WITH_MORE(T)                                                                                     \
  BIAS_GRAD(T, T)                                                                                  \
  BIAS_GRAD(float, T)
#define SCALED_GEMM(A, B, C)                                                                       \
  template void scaledGemm(const Stream &, Trans, Trans, int64_t, int64_t, int64_t, const A *,     \
                           const float *, const B *, const float *, C *, OrNull<const C *>,        \
                           OrNull<const C *>);
#define SCALED_GEMMS(C)                                                                            \
  SCALED_GEMM(Float8E4M3, Float8E4M3, C)                                                           \
  SCALED_GEMM(Float8E4M3, Float8E5M2, C)                                                           \
  SCALED_GEMM(Float8E5M2, Float8E4M3, C)
SCALED_GEMMS(float)
SCALED_GEMMS(BFloat16)
GEMM(float, float, float)
GEMM_BIAS(float, float, float, float)
WITH_MORE(float)
BIAS_GRAD(float, float)
COMBINATIONS(Half)
COMBINATIONS(BFloat16)

} // namespace partita_rt::cuda
