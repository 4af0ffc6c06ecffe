// Matmuls with cuBLASLt (matmuls.h): descriptors, algorithms, the call.
//
// cuBLASLt's matrices are column-major: it sees a row-major matrix as its transpose, with the same
// leading dimension. So it computes C^T = op(B)^T op(A)^T: its A is our B and its B is our A.

#include "cuda/cuda.h"
#include "cuda/matmuls/plan.h"
#include "partita_rt/cuda/kernel_times.h"
#include "partita_rt/cuda/shapes.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace partita_rt::cuda {

namespace {

constexpr int kFirstSuggestions = 8;

void check(cublasStatus_t status, const char *call, const std::string &shape) {
  if (status != CUBLAS_STATUS_SUCCESS)
    fail("%s%s%s: %s", shape.c_str(), shape.empty() ? "" : ": ", call,
         cublasLtGetStatusString(status));
}

cudaDataType_t typeOf(DType type) {
  switch (type) {
  case DType::Float32:
    return CUDA_R_32F;
  case DType::Float16:
    return CUDA_R_16F;
  case DType::Float8E4M3:
    return CUDA_R_8F_E4M3;
  case DType::Float8E5M2:
    return CUDA_R_8F_E5M2;
  default:
    return CUDA_R_16BF;
  }
}

cublasLtEpilogue_t epilogueOf(Epilogue epilogue) {
  switch (epilogue) {
  case Epilogue::Bias:
    return CUBLASLT_EPILOGUE_BIAS;
  case Epilogue::BiasGelu:
    return CUBLASLT_EPILOGUE_GELU_BIAS;
  case Epilogue::BiasGeluAux:
    return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
  case Epilogue::GeluGrad:
    return CUBLASLT_EPILOGUE_DGELU;
  case Epilogue::SumA:
    return CUBLASLT_EPILOGUE_BGRADB; // our A is its B
  case Epilogue::SumB:
    return CUBLASLT_EPILOGUE_BGRADA;
  case Epilogue::GeluGradSums:
    return CUBLASLT_EPILOGUE_DGELU_BGRAD;
  case Epilogue::None:
    break;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

const char *nameOf(Epilogue epilogue) {
  const char *names[] = {"",
                         ", bias",
                         ", bias and gelu",
                         ", bias and gelu, its argument kept",
                         ", gelu gradient",
                         ", sums of a",
                         ", sums of b",
                         ", gelu gradient and its sums"};
  return names[int(epilogue)];
}

bool hasVector(Epilogue epilogue) {
  return epilogue != Epilogue::None && epilogue != Epilogue::GeluGrad;
}
bool hasAux(Epilogue epilogue) {
  return epilogue == Epilogue::BiasGeluAux || epilogue == Epilogue::GeluGrad ||
         epilogue == Epilogue::GeluGradSums;
}

/// Does cuBLASLt have no kernel for this epilogue here? (An error of ours would occur without the
/// epilogue too.)
bool isImpossible(const MatmulShape &shape, cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED ||
         (status == CUBLAS_STATUS_INVALID_VALUE && shape.epilogue != Epilogue::None);
}

/// Checks NVIDIA's requirements on the auxiliary matrix.
bool allowsEpilogue(const MatmulShape &shape) {
  return !hasAux(shape.epilogue) || (shape.ldAux % 8 == 0 && shape.alignment[4] == 16);
}

cudaDeviceProp currentDevice() {
  int device = 0;
  checkCuda(cudaGetDevice(&device), "cudaGetDevice");
  cudaDeviceProp properties;
  checkCuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return properties;
}

template <typename T>
void set(const Operation &to, cublasLtMatmulDescAttributes_t attribute, T value) {
  check(cublasLtMatmulDescSetAttribute(to.handle, attribute, &value, sizeof value),
        "cublasLtMatmulDescSetAttribute", "");
}
template <typename T>
void set(const Layout &to, cublasLtMatrixLayoutAttribute_t attribute, T value) {
  check(cublasLtMatrixLayoutSetAttribute(to.handle, attribute, &value, sizeof value),
        "cublasLtMatrixLayoutSetAttribute", "");
}
template <typename T>
void set(const Preference &to, cublasLtMatmulPreferenceAttributes_t attribute, T value) {
  check(cublasLtMatmulPreferenceSetAttribute(to.handle, attribute, &value, sizeof value),
        "cublasLtMatmulPreferenceSetAttribute", "");
}

/// Describes a row-major matrix stored [rows, columns].
void describe(Layout &layout, DType type, int64_t rows, int64_t columns, int64_t ld, int64_t batch,
              int64_t stride) {
  check(cublasLtMatrixLayoutCreate(&layout.handle, typeOf(type), uint64_t(columns), uint64_t(rows),
                                   ld),
        "cublasLtMatrixLayoutCreate", "");
  if (batch == 1)
    return;
  if (batch > std::numeric_limits<int32_t>::max())
    fail("a batch of %lld matmuls", (long long)batch);
  set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, int32_t(batch));
  set(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride);
}

cublasOperation_t flag(Trans trans) { return trans == Trans::Yes ? CUBLAS_OP_T : CUBLAS_OP_N; }

} // namespace

//===-- Shapes ------------------------------------------------------------------------------===//

static auto fieldsOf(const MatmulShape &s) {
  return std::tie(s.a, s.b, s.c, s.transA, s.transB, s.epilogue, s.m, s.n, s.k, s.lda, s.ldb, s.ldc,
                  s.ldAux, s.ldAddend, s.batch, s.strideA, s.strideB, s.strideC, s.alignment[0],
                  s.alignment[1], s.alignment[2], s.alignment[3], s.alignment[4], s.alignment[5]);
}

bool isScaled(const MatmulShape &shape) { return sizeOf(shape.a) == 1; }

bool operator<(const MatmulShape &left, const MatmulShape &right) {
  return fieldsOf(left) < fieldsOf(right);
}

std::string MatmulShape::text() const {
  auto number = [](int64_t value) { return std::to_string(value); };
  auto matrix = [&](DType type, int64_t rows, int64_t columns, int64_t ld, int64_t stride) {
    std::string text = std::string(nameOf(type)) + "[" + number(rows) + ", " + number(columns) +
                       "] by " + number(ld);
    return batch > 1 ? text + " and " + number(stride) : text;
  };
  bool ta = transA == Trans::Yes, tb = transB == Trans::Yes;
  std::string text = batch > 1 ? number(batch) + " matmuls " : "matmul ";
  text += matrix(a, ta ? k : m, ta ? m : k, lda, strideA) + (ta ? " transposed" : "") + " * " +
          matrix(b, tb ? n : k, tb ? k : n, ldb, strideB) + (tb ? " transposed" : "") + " -> " +
          matrix(c, m, n, ldc, strideC) + cuda::nameOf(epilogue);
  if (hasAux(epilogue))
    text += " by " + number(ldAux);
  if (ldAddend > 0)
    text += ", plus by " + number(ldAddend);
  text += ", aligned";
  const bool has[] = {true, true, true, hasVector(epilogue), hasAux(epilogue), ldAddend > 0};
  for (int i = 0; i < 6; ++i)
    if (has[i])
      text += " " + number(alignment[i]);
  return text;
}

//===-- Descriptors and algorithms ----------------------------------------------------------===//

Matmuls::Plan::Plan(const MatmulShape &shape) : shape(shape) {
  check(cublasLtMatmulDescCreate(&operation.handle, CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "cublasLtMatmulDescCreate", "");
  set(operation, CUBLASLT_MATMUL_DESC_TRANSA, int32_t(flag(shape.transB)));
  set(operation, CUBLASLT_MATMUL_DESC_TRANSB, int32_t(flag(shape.transA)));
  set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t(epilogueOf(shape.epilogue)));
  if (hasAux(shape.epilogue))
    set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, shape.ldAux);
  if (isScaled(shape)) // fast accumulation in forward passes, whose operands are both in e4m3
    set(operation, CUBLASLT_MATMUL_DESC_FAST_ACCUM, int8_t(shape.a == shape.b));
  bool ta = shape.transA == Trans::Yes, tb = shape.transB == Trans::Yes;
  describe(a, shape.a, ta ? shape.k : shape.m, ta ? shape.m : shape.k, shape.lda, shape.batch,
           shape.strideA);
  describe(b, shape.b, tb ? shape.n : shape.k, tb ? shape.k : shape.n, shape.ldb, shape.batch,
           shape.strideB);
  describe(c, shape.c, shape.m, shape.n, shape.ldc, shape.batch, shape.strideC);
  describe(addend, shape.c, shape.m, shape.n, shape.ldAddend > 0 ? shape.ldAddend : shape.ldc,
           shape.batch, shape.strideC);
}

Matmuls::Matmuls(void *workspace, int64_t workspaceBytes)
    : workspace(workspace), workspaceBytes(workspaceBytes) {
  cudaDeviceProp properties = currentDevice();
  multiprocessors = properties.multiProcessorCount;
  device =
      std::string(properties.name) + ", " + std::to_string(multiprocessors) + " multiprocessors";
  check(cublasLtCreate(&handle), "cublasLtCreate", "");
}

Matmuls::~Matmuls() {
  plans.clear();
  cublasLtDestroy(handle);
}

/// Returns cuBLASLt's proposals within our bounds, best first.
std::vector<cublasLtMatmulHeuristicResult_t> Matmuls::suggestions(const Plan &plan,
                                                                  int most) const {
  const MatmulShape &shape = plan.shape;
  Preference preference;
  check(cublasLtMatmulPreferenceCreate(&preference.handle), "cublasLtMatmulPreferenceCreate", "");
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t(workspaceBytes));
  set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      uint32_t(CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, uint32_t(shape.alignment[1]));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, uint32_t(shape.alignment[0]));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
      uint32_t(shape.alignment[shape.ldAddend > 0 ? 5 : 2]));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, uint32_t(shape.alignment[2]));
  std::vector<cublasLtMatmulHeuristicResult_t> found(static_cast<size_t>(most));
  int count = 0;
  cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      handle, plan.operation.handle, plan.b.handle, plan.a.handle, plan.addend.handle,
      plan.c.handle, preference.handle, most, found.data(), &count);
  if (isImpossible(shape, status))
    count = 0;
  else
    check(status, "cublasLtMatmulAlgoGetHeuristic", shape.text());
  found.resize(size_t(count));
  auto unusable = [&](const cublasLtMatmulHeuristicResult_t &result) {
    uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_NONE;
    size_t written = 0;
    return result.state != CUBLAS_STATUS_SUCCESS || result.workspaceSize > size_t(workspaceBytes) ||
           cublasLtMatmulAlgoConfigGetAttribute(&result.algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME,
                                                &scheme, sizeof scheme,
                                                &written) != CUBLAS_STATUS_SUCCESS ||
           (scheme != CUBLASLT_REDUCTION_SCHEME_NONE &&
            scheme != CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
  };
  found.erase(std::remove_if(found.begin(), found.end(), unusable), found.end());
  return found;
}

cublasStatus_t Matmuls::checkAlgorithm(const Plan &plan, const cublasLtMatmulAlgo_t &algorithm,
                                       size_t &workspace) const {
  cublasLtMatmulHeuristicResult_t result{};
  cublasStatus_t status =
      cublasLtMatmulAlgoCheck(handle, plan.operation.handle, plan.b.handle, plan.a.handle,
                              plan.addend.handle, plan.c.handle, &algorithm, &result);
  workspace = result.workspaceSize;
  return status;
}

/// Do separate kernels run by default, unless tuning has found the epilogue to be faster? A long
/// sum with fewer tiles than the GPU has multiprocessors needs k split, which an epilogue that sums
/// an operand's rows may exclude. With a GELU's gradient and its sums, cuBLASLt 13.1's first
/// suggestion took 0.92 ms on an H100, where the gradient alone and the sums take 0.31 and 0.08
/// (32,768 x 3,072 x 768).
static bool isApartUntuned(const MatmulShape &shape, int multiprocessors) {
  constexpr int64_t kLong = 4096, kRows = 128, kColumns = 256; // the largest usual tile
  bool sums = shape.epilogue == Epilogue::SumA || shape.epilogue == Epilogue::SumB;
  return shape.epilogue == Epilogue::GeluGradSums ||
         (sums && shape.k >= kLong &&
          ceilDiv(shape.m, kRows) * ceilDiv(shape.n, kColumns) < multiprocessors);
}

void Matmuls::choose(Plan &plan) {
  if (!allowsEpilogue(plan.shape))
    return;
  std::string text = plan.shape.text();
  if (auto chosen = choices.find(text); chosen != choices.end()) {
    if (chosen->second.apart && plan.shape.epilogue != Epilogue::None)
      return;
    size_t needed = 0;
    cublasStatus_t status = checkAlgorithm(plan, chosen->second.algorithm, needed);
    if (status != CUBLAS_STATUS_SUCCESS)
      fail("%s: the algorithm of '%s' is refused by cuBLASLt: %s; tune the program again",
           choicesFrom.c_str(), text.c_str(), cublasLtGetStatusString(status));
    if (needed > size_t(workspaceBytes))
      fail(
          "%s: the algorithm of '%s' needs %zu bytes of workspace, of %lld; tune the program again",
          choicesFrom.c_str(), text.c_str(), needed, (long long)workspaceBytes);
    plan.algorithm = chosen->second.algorithm;
    plan.possible = true;
    return;
  }
  if ((plan.isApartUntuned = isApartUntuned(plan.shape, multiprocessors)))
    return;
  auto found = suggestions(plan, kFirstSuggestions);
  if (found.empty() && plan.shape.epilogue == Epilogue::None)
    fail("%s: cuBLASLt %zu knows no algorithm for it within %lld bytes of workspace", text.c_str(),
         cublasLtGetVersion(), (long long)workspaceBytes);
  if (found.empty())
    return;
  plan.algorithm = found[0].algo;
  plan.possible = true;
}

int64_t Matmuls::countWithoutChoice() const {
  if (choices.empty())
    return 0;
  return std::count_if(plans.begin(), plans.end(), [&](auto &each) {
    bool hasCandidates = each.second->possible || each.second->isApartUntuned;
    return hasCandidates && choices.count(each.first.text()) == 0;
  });
}

void Matmuls::setPointers(Plan &plan, const MatmulOperands &operands) const {
  if (hasVector(plan.shape.epilogue))
    set(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.vector);
  if (hasAux(plan.shape.epilogue))
    set(plan.operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, operands.aux);
  if (isScaled(plan.shape)) { // its A is our B
    set(plan.operation, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, operands.scaleB);
    set(plan.operation, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, operands.scaleA);
  }
}

/// Returns an address with exactly this alignment: the choice depends on alignments, and must
/// follow from the shape alone.
static void *addressAligned(int64_t bytes) {
  return reinterpret_cast<void *>(uintptr_t((1 << 20) + bytes));
}

Matmuls::Plan &Matmuls::planOf(const MatmulShape &shape, const MatmulOperands &operands) {
  std::unique_ptr<Plan> &plan = plans[shape];
  if (!plan) {
    auto made = std::make_unique<Plan>(shape);
    MatmulOperands aligned{};
    aligned.vector = addressAligned(shape.alignment[3]);
    aligned.aux = addressAligned(shape.alignment[4]);
    aligned.scaleA = aligned.scaleB = static_cast<const float *>(addressAligned(16));
    setPointers(*made, aligned);
    choose(*made);
    plan = std::move(made);
  }
  setPointers(*plan, operands);
  return *plan;
}

cublasStatus_t Matmuls::launch(const Stream &stream, const Plan &plan,
                               const cublasLtMatmulAlgo_t &algorithm,
                               const MatmulOperands &operands) const {
  const void *addend = plan.shape.ldAddend > 0 ? operands.addend : operands.c;
  const MatmulShape &shape = plan.shape;
  std::string name = stream.times ? shape.text() : "";
  Timed timed(stream, name.c_str(), nullptr,
              2.0 * double(shape.batch) * double(shape.m) * double(shape.n) * double(shape.k));
  return cublasLtMatmul(handle, plan.operation.handle, &operands.alpha, operands.b, plan.b.handle,
                        operands.a, plan.a.handle, &operands.beta, addend, plan.addend.handle,
                        operands.c, plan.c.handle, &algorithm, workspace, size_t(workspaceBytes),
                        stream.handle);
}

bool Matmuls::multiply(const Stream &stream, const MatmulShape &shape,
                       const MatmulOperands &operands, const Apart &apart) {
  Plan &plan = planOf(shape, operands);
  if (!plan.possible) {
    if (recording && plan.isApartUntuned)
      recorded[shape] = {operands, apart};
    return false;
  }
  cublasStatus_t status = launch(stream, plan, plan.algorithm, operands);
  if (shape.epilogue != Epilogue::None && isImpossible(shape, status))
    return plan.possible = false;
  if (status != CUBLAS_STATUS_SUCCESS)
    check(status, "cublasLtMatmul", shape.text());
  if (recording)
    recorded[shape] = {operands, apart};
  return true;
}

//===-- Choices -----------------------------------------------------------------------------===//

DeviceChoices Matmuls::ours() const {
  DeviceChoices found{device, int64_t(cublasLtGetVersion()), {}};
  for (const auto &[text, choice] : choices)
    found.choices.push_back(choice);
  return found;
}

bool Matmuls::isHere(const DeviceChoices &tuning) const {
  return tuning.device == device && tuning.version == int64_t(cublasLtGetVersion());
}

void Matmuls::use(const DeviceChoices &tuning, const std::string &from) {
  for (const Choice &choice : tuning.choices)
    choices[choice.shape] = choice;
  choicesFrom = from;
  plans.clear();
}

} // namespace partita_rt::cuda
