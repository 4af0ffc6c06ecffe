// test/gpu's unit tests pass host memory to cuBLASLt, which receives copies on the device
// (test/gpu/unit/on_device.h). Here the simulated cuBLASLt receives them.

#if !defined(PARTITA_TEST_ON_GPU)

#include "matmuls_stream.h"

#include "../../gpu/unit/on_device.h"
#include "partita_rt/cuda/shapes.h"
#include "simulated/cublaslt_types.h"

namespace partita_rt::cuda {
namespace {

struct Operands {
  cublasLtMatrixLayout_t a, b, c, d;
  cublasLtMatmulDesc_t operation;
};

template <typename T> void set(Operands &o, cublasLtMatmulDescAttributes_t attribute, T value) {
  ASSERT_EQ(cublasLtMatmulDescSetAttribute(o.operation, attribute, &value, sizeof value),
            CUBLAS_STATUS_SUCCESS);
}

constexpr int64_t kLeading = 8;     // more than the rows of all of them
constexpr int64_t kTransposed = 24; // more than a transposed B's

Operands made(int64_t m, int64_t n, int64_t k, bool transposesB = false) {
  constexpr cudaDataType type = CUDA_R_32F;
  Operands o{};
  EXPECT_EQ(cublasLtMatrixLayoutCreate(&o.a, type, uint64_t(m), uint64_t(k), kLeading),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasLtMatrixLayoutCreate(&o.b, type, uint64_t(transposesB ? n : k),
                                       uint64_t(transposesB ? k : n),
                                       transposesB ? kTransposed : kLeading),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasLtMatrixLayoutCreate(&o.c, type, uint64_t(m), uint64_t(n), kLeading),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasLtMatrixLayoutCreate(&o.d, type, uint64_t(m), uint64_t(n), kLeading),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasLtMatmulDescCreate(&o.operation, CUBLAS_COMPUTE_32F, CUDA_R_32F),
            CUBLAS_STATUS_SUCCESS);
  set(o, CUBLASLT_MATMUL_DESC_TRANSB, int32_t(transposesB ? CUBLAS_OP_T : CUBLAS_OP_N));
  return o;
}

void destroy(const Operands &o) {
  for (cublasLtMatrixLayout_t layout : {o.a, o.b, o.c, o.d})
    cublasLtMatrixLayoutDestroy(layout);
  cublasLtMatmulDescDestroy(o.operation);
}

int64_t calls, onTheHost, misaligned;

/// A cuBLASLt that checks that its operands are on the device and aligned as the host's were.
cublasStatus_t strict(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, const void *alpha,
                      const void *a, cublasLtMatrixLayout_t aLayout, const void *b,
                      cublasLtMatrixLayout_t bLayout, const void *beta, const void *c,
                      cublasLtMatrixLayout_t cLayout, void *d, cublasLtMatrixLayout_t dLayout,
                      const cublasLtMatmulAlgo_t *algorithm, void *workspace, size_t bytes,
                      cudaStream_t stream) {
  ++calls;
  auto epilogue = on_device::fieldOf<uint32_t>(operation, CUBLASLT_MATMUL_DESC_EPILOGUE);
  std::vector<const void *> all{a, b, c, d};
  if (epilogue != CUBLASLT_EPILOGUE_DEFAULT && epilogue != CUBLASLT_EPILOGUE_DGELU)
    all.push_back(on_device::fieldOf<void *>(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER));
  if (epilogue & 128)
    all.push_back(on_device::fieldOf<void *>(operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER));
  for (const void *each : all) {
    cudaPointerAttributes attributes{};
    onTheHost += cudaPointerGetAttributes(&attributes, each) != cudaSuccess ||
                 attributes.type != cudaMemoryTypeDevice;
  }
  misaligned += reinterpret_cast<uintptr_t>(a) % 256 != 16;
  return cublasLtMatmul(handle, operation, alpha, a, aLayout, b, bLayout, beta, c, cLayout, d,
                        dLayout, algorithm, workspace, bytes, stream);
}

/// The matmul on device memory equals that on host memory, including its epilogue's results, and
/// bytes between columns are unchanged.
void expectTheSame(cublasLtEpilogue_t epilogue, int64_t n, bool apart) {
  SCOPED_TRACE(testing::Message() << epilogue << " " << n << " " << apart);
  const int64_t m = 5, k = 7;
  cublasLtHandle_t handle;
  ASSERT_EQ(cublasLtCreate(&handle), CUBLAS_STATUS_SUCCESS);
  Operands o = made(m, n, k, epilogue == CUBLASLT_EPILOGUE_BGRADB);
  set(o, CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t(epilogue));
  set(o, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, kLeading);
  cublasLtMatmulPreference_t preference;
  cublasLtMatmulPreferenceCreate(&preference);
  uint32_t alignment = 16;
  for (auto which :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    cublasLtMatmulPreferenceSetAttribute(preference, which, &alignment, sizeof alignment);
  Floats results[2];
  for (bool copied : {false, true}) {
    struct alignas(256) Space {
      float a[7 * 8 + 4], b[7 * 24], c[20 * 8], d[20 * 8], aux[20 * 8], vector[20];
    };
    auto space = std::make_unique<Space>();
    auto *numbers = reinterpret_cast<float *>(space.get());
    for (size_t i = 0; i < sizeof(Space) / sizeof(float); ++i)
      numbers[i] = float(int(i * 37 % 9)) - 4;
    set(o, CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<void *>(space->vector));
    set(o, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, static_cast<void *>(space->aux));
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    ASSERT_EQ(cublasLtMatmulAlgoGetHeuristic(handle, o.operation, o.a, o.b, o.c, o.d, preference, 1,
                                             &found, &count),
              CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(count, 1);
    float alpha = 1, beta = 2;
    const void *addend = apart ? space->c : space->d;
    on_device::Matmul plain = cublasLtMatmul, real = strict;
    cublasStatus_t status =
        copied
            ? on_device::matmul(real, handle, o.operation, &alpha, space->a + 4, o.a, space->b, o.b,
                                &beta, addend, o.c, space->d, o.d, &found.algo, nullptr, 0, nullptr)
            : plain(handle, o.operation, &alpha, space->a + 4, o.a, space->b, o.b, &beta, addend,
                    o.c, space->d, o.d, &found.algo, nullptr, 0, nullptr);
    EXPECT_EQ(status, CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    results[copied].assign(numbers, numbers + sizeof(Space) / sizeof(float));
    EXPECT_EQ(on_device::fieldOf<void *>(o.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER),
              space->vector);
  }
  EXPECT_EQ(results[0], results[1]);
  cublasLtMatmulPreferenceDestroy(preference);
  destroy(o);
  cublasLtDestroy(handle);
}

TEST(OnDevice, OperandsAreCopied) {
  calls = onTheHost = misaligned = 0;
  for (cublasLtEpilogue_t epilogue :
       {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_GELU_BIAS,
        CUBLASLT_EPILOGUE_GELU_AUX_BIAS, CUBLASLT_EPILOGUE_DGELU, CUBLASLT_EPILOGUE_BGRADA,
        CUBLASLT_EPILOGUE_BGRADB})
    for (int64_t n : {3, 20})
      expectTheSame(epilogue, n, n == 20);
  EXPECT_EQ(calls, 14);
  EXPECT_EQ(onTheHost, 0);
  EXPECT_EQ(misaligned, 0);
}

/// Sums of operands as they lie, only.
TEST(SimulatedCublasLt, RefusesSumsOfOtherwiseTransposedOperands) {
  cublasLtHandle_t handle;
  ASSERT_EQ(cublasLtCreate(&handle), CUBLAS_STATUS_SUCCESS);
  cublasLtMatmulPreference_t preference;
  cublasLtMatmulPreferenceCreate(&preference);
  auto status = [&](cublasLtEpilogue_t epilogue, bool transposesA, bool transposesB) {
    Operands o = made(7, 7, 7, transposesB);
    float vector[7];
    set(o, CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t(epilogue));
    set(o, CUBLASLT_MATMUL_DESC_TRANSA, int32_t(transposesA ? CUBLAS_OP_T : CUBLAS_OP_N));
    set(o, CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<void *>(vector));
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    cublasStatus_t answer = cublasLtMatmulAlgoGetHeuristic(handle, o.operation, o.a, o.b, o.c, o.d,
                                                           preference, 1, &found, &count);
    destroy(o);
    return answer;
  };
  for (bool other : {false, true}) {
    EXPECT_EQ(status(CUBLASLT_EPILOGUE_BGRADA, false, other), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(status(CUBLASLT_EPILOGUE_BGRADA, true, other), CUBLAS_STATUS_NOT_SUPPORTED);
    EXPECT_EQ(status(CUBLASLT_EPILOGUE_BGRADB, other, true), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(status(CUBLASLT_EPILOGUE_BGRADB, other, false), CUBLAS_STATUS_NOT_SUPPORTED);
  }
  cublasLtMatmulPreferenceDestroy(preference);
  cublasLtDestroy(handle);
}

/// isDirect (shapes.h) sends exactly the types to cuBLASLt that NVIDIA documents.
TEST(CudaMatmul, TypesAreThoseOfTheDocumentation) {
  auto cudaType = [](DType type) {
    return type == DType::Float32 ? CUDA_R_32F : type == DType::Float16 ? CUDA_R_16F : CUDA_R_16BF;
  };
  const DType types[] = {DType::Float32, DType::Float16, DType::BFloat16};
  int direct = 0;
  for (DType a : types)
    for (DType b : types)
      for (DType c : types) {
        EXPECT_EQ(isDirect(a, b, c),
                  simulated::multiplies(cudaType(a), cudaType(b), cudaType(c), cudaType(c)))
            << nameOf(a) << " " << nameOf(b) << " " << nameOf(c);
        direct += isDirect(a, b, c);
      }
  EXPECT_EQ(direct, int(std::size(simulated::kMatmulTypes)));
}

} // namespace
} // namespace partita_rt::cuda

#endif
