// A simulated cuBLASLt (cublasLt.h). The arguments are checked and copied at the call; the matmul
// is an entry of the stream (matmul.h). Descriptors: cublaslt_descriptors.cpp.

#include <cublasLt.h>

#include "simulated/cublaslt_types.h"
#include "simulated/matmul.h"
#include "simulated/queue.h"
#include "simulated/record.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

using namespace simulated;

struct cublasLtContext {};

namespace {

constexpr uint64_t kMark = 0x5041525449544131; // "PARTITA1"

struct Properties {
  size_t workspace;
  int32_t splits;
  uint32_t scheme;
  int64_t alignment;
};
constexpr Properties kProperties[kAlgorithms] = {
    {64 << 20, 1, CUBLASLT_REDUCTION_SCHEME_NONE, 16},
    {0, 2, CUBLASLT_REDUCTION_SCHEME_INPLACE, 16},
    {0, 1, CUBLASLT_REDUCTION_SCHEME_NONE, 16},
    {1 << 20, 2, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, 16},
    {0, 1, CUBLASLT_REDUCTION_SCHEME_NONE, 1},
};
std::atomic<int> delays[kAlgorithms];
std::atomic<int64_t> matmuls[kAlgorithms];

int64_t sizeOf(cudaDataType type) { return type == CUDA_R_32F ? 4 : isScaled(type) ? 1 : 2; }

bool aligned(const void *pointer, int64_t bytes) {
  return reinterpret_cast<uintptr_t>(pointer) % uint64_t(bytes) == 0;
}

int64_t alignmentOf(int64_t bytes) {
  int64_t alignment = 256;
  while (bytes % alignment != 0)
    alignment /= 2;
  return alignment;
}

bool hasBias(uint32_t epilogue) {
  return epilogue != CUBLASLT_EPILOGUE_DEFAULT && epilogue != CUBLASLT_EPILOGUE_DGELU;
}
bool hasAux(uint32_t epilogue) { return (epilogue & 128) != 0; }
bool hasSums(uint32_t epilogue) {
  return epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD || epilogue >= CUBLASLT_EPILOGUE_BGRADA;
}

cublasStatus_t checkLayout(const char *name, const Layout &layout) {
  if (layout.rows == 0 || layout.cols == 0)
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "%s has no elements", name);
  if (layout.ld < int64_t(layout.rows))
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "%s: a leading dimension of %lld for %lld rows",
                  name, (long long)layout.ld, (long long)layout.rows);
  return CUBLAS_STATUS_SUCCESS;
}

/// Checks the additional requirements on a matmul of 8-bit operands.
cublasStatus_t checkScaled(const Operation &operation, const Layout &a, const Layout &b,
                           const Layout &d) {
  if (operation.transA == CUBLAS_OP_N || operation.transB != CUBLAS_OP_N)
    return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "FP8: A must be transposed, and B must not");
  bool hasBias = operation.epilogue == CUBLASLT_EPILOGUE_BIAS;
  if (operation.epilogue != CUBLASLT_EPILOGUE_DEFAULT && !hasBias)
    return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "FP8: epilogue %u is not simulated",
                  operation.epilogue);
  if (hasBias && d.type == CUDA_R_32F)
    return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "FP8: a bias with a result in float is bfloat16");
  for (const Layout *layout : {&a, &b, &d})
    for (uint64_t size : {layout->rows, layout->cols, uint64_t(layout->ld)})
      if (size % kScaledMultiple != 0)
        return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "FP8: a size of %llu", (unsigned long long)size);
  if (!operation.scaleA || !operation.scaleB)
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "FP8: there is no scale");
  for (const void *scale : {operation.scaleA, operation.scaleB})
    if (!aligned(scale, kScaleAlignment))
      return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "FP8: a scale at %p", scale);
  return CUBLAS_STATUS_SUCCESS;
}

/// Sums of an operand are along its stored rows (cublaslt_types.h).
cublasStatus_t checkSums(const Operation &operation) {
  if (operation.epilogue == CUBLASLT_EPILOGUE_BGRADA && operation.transA != CUBLAS_OP_N)
    return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "BGRADA: A must not be transposed");
  if (operation.epilogue == CUBLASLT_EPILOGUE_BGRADB && operation.transB == CUBLAS_OP_N)
    return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "BGRADB: B must be transposed");
  return CUBLAS_STATUS_SUCCESS;
}

/// Checks what cuBLASLt can check from descriptors alone.
cublasStatus_t checkDescriptors(const Operation *operation, const Layout *a, const Layout *b,
                                const Layout *c, const Layout *d) {
  if (!operation || !a || !b || !c || !d)
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "a descriptor is missing");
  if (operation->computeType != CUBLAS_COMPUTE_32F || operation->scaleType != CUDA_R_32F)
    return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "only float32 sums and scales");
  // A bias is of D's type unless an attribute that is not simulated says otherwise.
  if (c->type != d->type || !(multiplies(a->type, b->type, c->type, d->type) ||
                              multipliesScaled(a->type, b->type, c->type)))
    return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "types %d * %d -> %d", a->type, b->type, d->type);
  const Layout *layouts[] = {a, b, c, d};
  const char *names[] = {"A", "B", "C", "D"};
  for (int i = 0; i < 4; ++i) {
    if (cublasStatus_t status = checkLayout(names[i], *layouts[i]))
      return status;
    if (layouts[i]->batch != d->batch)
      return refuse(CUBLAS_STATUS_INVALID_VALUE, "%s: a batch of %d, of D %d", names[i],
                    layouts[i]->batch, d->batch);
  }
  bool ta = operation->transA != CUBLAS_OP_N, tb = operation->transB != CUBLAS_OP_N;
  if ((ta ? a->cols : a->rows) != d->rows || (tb ? b->rows : b->cols) != d->cols ||
      (ta ? a->rows : a->cols) != (tb ? b->cols : b->rows) || c->rows != d->rows ||
      c->cols != d->cols)
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "matrices whose sizes do not go together");
  if (isScaled(a->type))
    if (cublasStatus_t status = checkScaled(*operation, *a, *b, *d))
      return status;
  if (cublasStatus_t status = checkSums(*operation))
    return status;
  uint32_t epilogue = operation->epilogue;
  if (hasBias(epilogue) && !operation->bias)
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "epilogue %u without a bias pointer", epilogue);
  if (hasAux(epilogue) &&
      (!operation->aux || !aligned(operation->aux, 16) || operation->auxLd % kAuxLdMultiple != 0 ||
       operation->auxLd < int64_t(d->rows)))
    return refuse(CUBLAS_STATUS_INVALID_VALUE,
                  "epilogue %u: an auxiliary pointer %p with a leading dimension of %lld", epilogue,
                  operation->aux, (long long)operation->auxLd);
  return CUBLAS_STATUS_SUCCESS;
}

/// Returns a hash of the problem that an algorithm is made for: it is refused for any other.
uint64_t problemOf(const Operation &operation, const Layout &a, const Layout &b, const Layout &c,
                   const Layout &d) {
  uint64_t hash = 1469598103934665603u;
  auto add = [&](uint64_t value) { hash = (hash ^ value) * 1099511628211u; };
  add(operation.epilogue);
  add(uint64_t(operation.transA) * 2 + uint64_t(operation.transB));
  for (const Layout *layout : {&a, &b, &c, &d})
    for (uint64_t value : {uint64_t(layout->type), layout->rows, layout->cols, uint64_t(layout->ld),
                           uint64_t(layout->batch)})
      add(value);
  return hash;
}

/// Returns the alignment that a layout implies: of columns, and of matrices of a batch.
int64_t alignmentOf(const Layout &layout) {
  int64_t alignment = layout.cols > 1 ? alignmentOf(layout.ld * sizeOf(layout.type)) : 256;
  return layout.batch > 1 && layout.stride != 0
             ? std::min(alignment, alignmentOf(layout.stride * sizeOf(layout.type)))
             : alignment;
}

/// Does the algorithm exist for this problem? Sums and 8-bit operands require tensor cores, and so
/// does a bias if C is a different matrix than D. (NVIDIA's algorithms do not cover every problem either.)
bool exists(int algorithm, uint32_t epilogue, const Layout &a, const Layout &b, const Layout &c,
            const Layout &d) {
  bool isApart = hasBias(epilogue) && c.ld != d.ld;
  if ((hasSums(epilogue) || isApart || isScaled(a.type)) && algorithm == kAnywhere)
    return false;
  for (const Layout *layout : {&a, &b, &c, &d})
    if (alignmentOf(*layout) < kProperties[algorithm].alignment)
      return false;
  return true;
}

void run(const Matmul &p) {
  multiply(p, kProperties[p.algorithm].splits);
  matmuls[p.algorithm] += 1;
  if (int delay = delays[p.algorithm])
    std::this_thread::sleep_for(std::chrono::microseconds(delay));
}

size_t bytesOf(const Layout &layout) {
  int64_t elements = (layout.batch - 1) * layout.stride + (int64_t(layout.cols) - 1) * layout.ld +
                     int64_t(layout.rows);
  return size_t(elements * sizeOf(layout.type));
}

void recordMatmul(const Matmul &p) {
  record("{\"matmul\": [" + std::to_string(p.m()) + ", " + std::to_string(p.n()) + ", " +
         std::to_string(p.k()) + "], \"batch\": " + std::to_string(p.d.batch) + ", \"bytes\": [" +
         std::to_string(sizeOf(p.a.type)) + ", " + std::to_string(sizeOf(p.b.type)) + ", " +
         std::to_string(sizeOf(p.d.type)) +
         "], \"epilogue\": " + std::to_string(p.operation.epilogue) +
         ", \"adds\": " + (p.beta != 0.0f ? "true" : "false") + "}");
}

/// Does everything that the matmul reads and writes belong to the device?
cublasStatus_t checkMemory(const Matmul &p, const void *workspace, size_t workspaceBytes) {
  struct Operand {
    const char *name;
    const void *data;
    size_t bytes;
  };
  auto vector = size_t(sizeOf(p.d.type)) *
                size_t(p.operation.epilogue == CUBLASLT_EPILOGUE_BGRADB ? p.n() : p.m());
  size_t aux = size_t(((p.n() - 1) * p.operation.auxLd + p.m()) * sizeOf(p.d.type));
  for (const Operand &each :
       {Operand{"A", p.aData, bytesOf(p.a)}, Operand{"B", p.bData, bytesOf(p.b)},
        Operand{"C", p.cData, p.beta != 0.0f ? bytesOf(p.c) : 0},
        Operand{"D", p.dData, bytesOf(p.d)},
        Operand{"the bias", p.operation.bias, hasBias(p.operation.epilogue) ? vector : 0},
        Operand{"the auxiliary matrix", p.operation.aux, hasAux(p.operation.epilogue) ? aux : 0},
        Operand{"A's scale", p.operation.scaleA, isScaled(p.a.type) ? sizeof(float) : 0},
        Operand{"B's scale", p.operation.scaleB, isScaled(p.b.type) ? sizeof(float) : 0},
        Operand{"the workspace", workspace, workspaceBytes}})
    if (each.bytes > 0 && !reachable(each.data, each.bytes))
      return refuse(CUBLAS_STATUS_EXECUTION_FAILED, "%s: %zu bytes %s", each.name, each.bytes,
                    describe(each.data).c_str());
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t checkAlgorithm(const cublasLtMatmulAlgo_t *algo, uint64_t problem) {
  if (!algo || algo->data[0] != kMark || algo->data[1] >= kAlgorithms)
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "this is no algorithm");
  if (algo->data[2] != problem)
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "an algorithm for another problem");
  return CUBLAS_STATUS_SUCCESS;
}

} // namespace

//===-- NVIDIA's API ------------------------------------------------------------------------===//

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  *handle = new cublasLtContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

const char *cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
  case CUBLAS_STATUS_SUCCESS:
    return "success";
  case CUBLAS_STATUS_INVALID_VALUE:
    return "an unsupported value or parameter was passed to the function";
  case CUBLAS_STATUS_NOT_SUPPORTED:
    return "the functionality requested is not supported";
  case CUBLAS_STATUS_EXECUTION_FAILED:
    return "the GPU program failed to execute";
  default:
    return "an internal error";
  }
}

size_t cublasLtGetVersion(void) { return 130000; }

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int most,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int *count) {
  *count = 0;
  if (cublasStatus_t status = checkDescriptors(operation, a, b, c, d))
    return status;
  int64_t least = 256;
  for (uint32_t each : preference->alignment)
    least = std::min<int64_t>(least, each);
  for (int i = 0; i < kAlgorithms && *count < most; ++i) {
    const Properties &properties = kProperties[i];
    if (properties.workspace > preference->workspace || properties.alignment > least ||
        (properties.scheme & ~preference->schemes) != 0 ||
        !exists(i, operation->epilogue, *a, *b, *c, *d))
      continue;
    cublasLtMatmulHeuristicResult_t &result = results[(*count)++];
    result = {};
    result.algo = {{kMark, uint64_t(i), problemOf(*operation, *a, *b, *c, *d)}};
    result.workspaceSize = properties.workspace;
    result.wavesCount = 1.0f;
  }
  return *count > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t *algo,
                                       cublasLtMatmulHeuristicResult_t *result) {
  if (cublasStatus_t status = checkDescriptors(operation, a, b, c, d))
    return status;
  if (cublasStatus_t status = checkAlgorithm(algo, problemOf(*operation, *a, *b, *c, *d)))
    return status;
  result->workspaceSize = kProperties[algo->data[1]].workspace;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute,
                                                    void *buf, size_t size, size_t *written) {
  if (algo->data[0] != kMark || algo->data[1] >= kAlgorithms || size != 4)
    return CUBLAS_STATUS_INVALID_VALUE;
  const Properties &properties = kProperties[algo->data[1]];
  uint32_t value = 0;
  if (attribute == CUBLASLT_ALGO_CONFIG_ID)
    value = uint32_t(algo->data[1]);
  if (attribute == CUBLASLT_ALGO_CONFIG_SPLITK_NUM)
    value = uint32_t(properties.splits);
  if (attribute == CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME)
    value = properties.scheme;
  std::memcpy(buf, &value, size);
  *written = size;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                              const void *alpha, const void *A, cublasLtMatrixLayout_t a,
                              const void *B, cublasLtMatrixLayout_t b, const void *beta,
                              const void *C, cublasLtMatrixLayout_t c, void *D,
                              cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t *algo,
                              void *workspace, size_t workspaceBytes, cudaStream_t stream) {
  if (!handle)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  if (cublasStatus_t status = checkDescriptors(operation, a, b, c, d))
    return status;
  if (cublasStatus_t status = checkAlgorithm(algo, problemOf(*operation, *a, *b, *c, *d)))
    return status;
  if (C == D && (c->ld != d->ld || c->stride != d->stride))
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "C and D at one address with different layouts");
  const Properties &properties = kProperties[algo->data[1]];
  if (properties.workspace > workspaceBytes || !aligned(workspace, 16))
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "%zu bytes of workspace at %p, of %zu",
                  workspaceBytes, workspace, properties.workspace);
  for (const void *each : {A, B, C, static_cast<const void *>(D)})
    if (!aligned(each, properties.alignment))
      return refuse(CUBLAS_STATUS_INVALID_VALUE, "algorithm %d wants %lld-byte aligned addresses",
                    int(algo->data[1]), (long long)properties.alignment);
  Matmul matmul{*operation, *a, *b, *c, *d};
  std::memcpy(&matmul.alpha, alpha, 4);
  std::memcpy(&matmul.beta, beta, 4);
  matmul.aData = A;
  matmul.bData = B;
  matmul.cData = C;
  matmul.dData = D;
  matmul.algorithm = int(algo->data[1]);
  if (stream)
    if (cublasStatus_t status = checkMemory(matmul, workspace, workspaceBytes))
      return status;
  if (recording())
    recordMatmul(matmul);
  return enqueue(stream, "cublasLtMatmul", [matmul] { run(matmul); }) == cudaSuccess
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_EXECUTION_FAILED;
}

//===-- For tests ---------------------------------------------------------------------------===//

void simulated::slowDown(Algorithm algorithm, int microseconds) {
  delays[algorithm] = microseconds;
}

int64_t simulated::matmulsBy(Algorithm algorithm) { return matmuls[algorithm]; }
