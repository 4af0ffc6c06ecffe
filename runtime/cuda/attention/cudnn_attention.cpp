// Plans of cuDNN for attention (fused_library.h): among the engines that its heuristics propose,
// best first, the first one that it can build, and that is deterministic where the shape asks for it.

#include "cuda/attention/cudnn_attention.h"

#ifdef PARTITA_RT_CUDNN

#include "cuda/cuda.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace partita_rt::cuda {

namespace {

constexpr int64_t kMostProposals = 32, kAlignment = 256;

class CudnnPlan : public FusedPlan {
public:
  /// Keeps the plan's ingredients alive as long as the plan.
  CudnnPlan(const CudnnLibrary &library, cudnnHandle_t handle,
            std::shared_ptr<const CudnnGraph> graph, CudnnDescriptor config)
      : library(library), handle(handle), graph(std::move(graph)), config(std::move(config)),
        plan(library, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, this->config.handle()).finalize();
    plan.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &sumsAt);
    sumsAt = (sumsAt + kAlignment - 1) / kAlignment * kAlignment;
    workspaceBytes = sumsAt + this->graph->dqSumsBytes();
  }

  void run(CUstream_st *stream, const FusedPointers &pointers, void *workspace) override {
    float scale = pointers.scale, hidden = -std::numeric_limits<float>::infinity(), one = 1.0f;
    void *numbers[] = {&scale, &hidden, &one};
    std::vector<void *> data;
    const std::vector<int64_t> &operands = graph->operands();
    for (int64_t operand : operands)
      data.push_back(operand < kFusedOperands  ? pointers.data[operand]
                     : operand == kCudnnDqSums ? static_cast<char *>(workspace) + sumsAt
                                               : numbers[operand - kCudnnScale]);
    CudnnDescriptor pack(library, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, int64_t(operands.size()),
             operands.data())
        .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, int64_t(data.size()),
             data.data())
        .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace)
        .finalize();
    library.check(library.cudnnSetStream(handle, stream), "cudnnSetStream");
    library.check(library.cudnnBackendExecute(handle, plan.handle(), pack.handle()),
                  "cudnnBackendExecute");
  }

private:
  const CudnnLibrary &library;
  cudnnHandle_t handle;
  std::shared_ptr<const CudnnGraph> graph;
  CudnnDescriptor config, plan;
  int64_t sumsAt = 0; ///< where kCudnnDqSums begins in the workspace, after cuDNN's own
};

/// Rejects engines that are noted as nondeterministic. A backward pass is deterministic because of
/// its graph (cudnn_graph.h): cuDNN 9.19 notes no attention engine in this way.
bool isDeterministic(const CudnnLibrary &library, const CudnnDescriptor &config) {
  CudnnDescriptor engine(library, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t handle = engine.handle();
  config.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &handle);
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
  int64_t count = engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                             CUDNN_NUMERICAL_NOTE_TYPE_COUNT, notes);
  for (int64_t i = 0; i < count; ++i)
    if (notes[i] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)
      return false;
  return true;
}

} // namespace

// Cases that are not in NVIDIA's support matrix (test/Runtime/cuda/cudnn_support.h has it as data), or that
// its own front end refuses before it asks cuDNN for an engine (cudnn-frontend 1.18.0). Forward: GPUs before
// 8.0; a single query with wide heads, except on 9.0. Backward, pre_validate_node of
// node/scaled_dot_product_flash_attention.h's CompositeSDPABackwardNode: one query with one key;
// heads of more than 256 elements on 9.0, of more than 128 elsewhere; deterministic gradients on
// 10.0 before cuDNN 9.18, which names an engine for them. Both: head sizes that are not multiples
// of 8. whyNotFused has the conditions that hold for all GPUs.
const char *whyNotCudnn(const FusedShape &shape, int capability) {
  if (capability < 80)
    return "compute capability 8.0 is needed";
  bool isWide = std::max(shape.headDim, shape.valueDim) > 128, isHopper = capability / 10 == 9;
  if (!shape.backward)
    return shape.sequence == 1 && isWide && !isHopper
               ? "cuDNN is asked for a single query with heads of more than 128 elements on compute capability 9.0 only"
               : nullptr;
  if (shape.sequence == 1 && shape.keySequence == 1)
    return "a single query and key have no gradients";
  // Since 9.18 there is an engine for deterministic ones.
  if (capability >= 100 && shape.deterministic)
    return "cuDNN's heuristics propose no deterministic gradients from compute capability 10.0 on";
  if (isWide && !isHopper)
    return "cuDNN is asked for gradients of heads of more than 128 elements on compute capability 9.0 only";
  return nullptr;
}

CudnnAttention::CudnnAttention(const CudnnLibrary &library) : library(library) {
  name = "cuDNN " + library.version();
}

CudnnAttention::~CudnnAttention() {
  if (handle)
    library.cudnnDestroy(handle);
}

void CudnnAttention::useCurrentDevice(int capability) {
  this->capability = capability;
  library.check(library.cudnnCreate(&handle), "cudnnCreate");
  device.emplace_back(library, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR)
      .set(CUDNN_ATTR_DEVICEPROP_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle)
      .finalize();
}

void CudnnAttention::useDevice(int capability, const std::string &properties) {
  this->capability = capability;
  device.emplace_back(library, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR)
      .set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, int64_t(properties.size()),
           properties.data())
      .finalize();
}

std::vector<CudnnDescriptor> CudnnAttention::proposals(const CudnnGraph &graph) const {
  CudnnDescriptor heuristics(library, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.operations().handle())
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode)
      .set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device.back().handle())
      .finalize();
  std::vector<CudnnDescriptor> configs;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (int64_t i = 0; i < kMostProposals; ++i) {
    configs.emplace_back(library, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    handles.push_back(configs.back().handle());
  }
  int64_t count = heuristics.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                 kMostProposals, handles.data());
  while (int64_t(configs.size()) > count)
    configs.pop_back();
  return configs;
}

std::unique_ptr<FusedPlan> CudnnAttention::plan(const FusedShape &shape) {
  if (const char *why = whyNotCudnn(shape, capability))
    fail("%s", why);
  auto graph = std::make_shared<const CudnnGraph>(library, shape);
  std::string why = "it proposes no kernel";
  for (CudnnDescriptor &config : proposals(*graph))
    try {
      if (!shape.deterministic || isDeterministic(library, config))
        return std::make_unique<CudnnPlan>(library, handle, graph, std::move(config));
      why = "its kernels are not deterministic";
    } catch (const Error &error) {
      why = error.what();
    }
  fail("%s", why.c_str());
}

std::unique_ptr<FusedLibrary> openCudnn(std::string &why) {
  CudnnLibrary library;
  if (!library.load(why))
    return nullptr;
  auto made = std::make_unique<CudnnAttention>(library);
  try {
    int device = 0;
    cudaDeviceProp properties;
    checkCuda(cudaGetDevice(&device), "cudaGetDevice");
    checkCuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
    made->useCurrentDevice(10 * properties.major + properties.minor);
  } catch (const Error &error) {
    why = error.what();
    return nullptr;
  }
  return made;
}

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDNN
