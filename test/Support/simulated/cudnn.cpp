// A simulated cuDNN (cudnn_graph.h): descriptors are maps of attributes. For attention three
// engines are proposed: one that cannot be built, one that is not deterministic, and a usable one.

#include <cudnn_graph.h>

#include "simulated/graph_operations.h"
#include "simulated/queue.h"

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>

using namespace simulated;

struct cudnnContext {
  cudaStream_t stream = nullptr;
};

namespace {

thread_local std::string lastMessage;
std::atomic<int64_t> plans{0}, executions{0}, largestWorkspace{0}, unordered{0};

/// Reports a caller's mistake.
__attribute__((format(printf, 2, 3))) cudnnStatus_t refuse(cudnnStatus_t status, const char *format,
                                                           ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "simulated cuDNN: %s\n", text);
  lastMessage = text;
  return status;
}

/// Reports that cuDNN has no kernel.
cudnnStatus_t cannot(cudnnStatus_t status, const char *why) {
  lastMessage = why;
  return status;
}

enum Engine : int64_t { kUnbuildable, kUnordered, kUsable, kEngines };

struct Descriptor;
using Shared = std::shared_ptr<Descriptor>;
struct Attribute {
  cudnnBackendAttributeType_t type;
  std::vector<char> bytes;
  std::vector<Shared> descriptors;
};
struct Descriptor {
  cudnnBackendDescriptorType_t type;
  bool finalized = false;
  std::map<int, Attribute> attributes;
  Graph graph;           ///< for an operation graph
  int64_t engine = -1;   ///< for an engine and its configuration
  int64_t workspace = 0; ///< for a plan

  bool has(int name) const { return attributes.count(name) != 0; }
  template <typename T> T get(int name, T otherwise = T()) const {
    auto found = attributes.find(name);
    if (found == attributes.end())
      return otherwise;
    T value{};
    std::memcpy(&value, found->second.bytes.data(), sizeof(T));
    return value;
  }
  Descriptor *link(int name) const {
    auto found = attributes.find(name);
    return found == attributes.end() ? nullptr : found->second.descriptors.at(0).get();
  }
};

Descriptor *of(cudnnBackendDescriptor_t handle) { return static_cast<Shared *>(handle)->get(); }

size_t sizeOf(cudnnBackendAttributeType_t type) {
  switch (type) {
  case CUDNN_TYPE_CHAR:
  case CUDNN_TYPE_BOOLEAN:
    return 1;
  case CUDNN_TYPE_INT64:
  case CUDNN_TYPE_HANDLE:
  case CUDNN_TYPE_VOID_PTR:
  case CUDNN_TYPE_BACKEND_DESCRIPTOR:
    return 8;
  default:
    return 4; // enums
  }
}

/// The attributes that each type of descriptor must have, with their types.
struct Wanted {
  cudnnBackendDescriptorType_t descriptor;
  int name;
  cudnnBackendAttributeType_t type;
  bool optional = false;
};
const Wanted kWanted[] = {
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, true},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, true},
    {CUDNN_BACKEND_MATMUL_DESCRIPTOR, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, true},
    {CUDNN_BACKEND_REDUCTION_DESCRIPTOR, CUDNN_ATTR_REDUCTION_OPERATOR,
     CUDNN_TYPE_REDUCTION_OPERATOR_TYPE},
    {CUDNN_BACKEND_REDUCTION_DESCRIPTOR, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_ADESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_BDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_CDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_DESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
     CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, true},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_TDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, true},
    {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_DESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_XDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_YDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, CUDNN_ATTR_OPERATION_RESHAPE_XDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, CUDNN_ATTR_OPERATION_RESHAPE_YDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_OPS,
     CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
     CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP,
     CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
     CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, CUDNN_ATTR_DEVICEPROP_HANDLE, CUDNN_TYPE_HANDLE},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
     CUDNN_TYPE_VOID_PTR},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR,
     true},
};

//===-- Graphs ------------------------------------------------------------------------------===//

GraphTensor tensorOf(const Descriptor &from) {
  GraphTensor tensor;
  tensor.id = from.get<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
  tensor.alignment = from.get<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
  tensor.type = from.get<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
  tensor.sizes = from.get<Sizes>(CUDNN_ATTR_TENSOR_DIMENSIONS);
  tensor.strides = from.get<Sizes>(CUDNN_ATTR_TENSOR_STRIDES);
  tensor.isVirtual = from.get<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL);
  tensor.byValue = from.get<bool>(CUDNN_ATTR_TENSOR_IS_BY_VALUE);
  return tensor;
}

/// Adds an operand to the graph and returns its number.
int64_t add(Graph &graph, const Descriptor *operand) {
  if (!operand)
    return -1;
  GraphTensor tensor = tensorOf(*operand);
  graph.tensors[tensor.id] = tensor;
  return tensor.id;
}

GraphOperation operationOf(Graph &graph, const Descriptor &from) {
  GraphOperation made{from.type};
  auto operand = [&](int name) { return add(graph, from.link(name)); };
  switch (from.type) {
  case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
    made.x = operand(CUDNN_ATTR_OPERATION_MATMUL_ADESC);
    made.b = operand(CUDNN_ATTR_OPERATION_MATMUL_BDESC);
    made.y = operand(CUDNN_ATTR_OPERATION_MATMUL_CDESC);
    break;
  case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
    made.mode = from.link(CUDNN_ATTR_OPERATION_REDUCTION_DESC)
                    ->get<cudnnReduceTensorOp_t>(CUDNN_ATTR_REDUCTION_OPERATOR);
    made.x = operand(CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
    made.y = operand(CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
    break;
  case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
    made.x = operand(CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
    made.y = operand(CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
    break;
  default: {
    const Descriptor *kind = from.link(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    made.mode = kind->get<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
    made.axis = kind->get<int64_t>(CUDNN_ATTR_POINTWISE_AXIS, -1);
    made.x = operand(CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
    made.b = operand(CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
    made.condition = operand(CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
    made.y = operand(CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
  }
  }
  return made;
}

bool isMatmul(const GraphOperation &operation) {
  return operation.kind == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR;
}

/// Does attention's engine, as far as it is simulated, have a kernel for the graph?
bool isSupported(const Graph &graph) {
  auto matmul = std::find_if(graph.operations.begin(), graph.operations.end(), isMatmul);
  if (matmul == graph.operations.end())
    return false;
  const GraphTensor &q = graph.tensors.at(matmul->x);
  if (q.sizes[3] % 8 != 0 || q.sizes[3] > 128)
    return false;
  for (const auto &[id, tensor] : graph.tensors)
    for (size_t d = 0; d < 3 && !tensor.isVirtual && tensor.elementBytes() == 2; ++d)
      if (tensor.sizes[d] > 1 && tensor.strides[d] % 8 != 0 && tensor.strides[d] != 1)
        return false;
  return true;
}

/// Returns the workspace, like the real one's: a backward pass keeps the rounded gradients of all
/// scores, unless dQ is summed up in float, and gradients of keys and values of all heads if these are shared.
int64_t workspaceOf(const Graph &graph) {
  std::vector<GraphOperation> matmuls;
  std::copy_if(graph.operations.begin(), graph.operations.end(), std::back_inserter(matmuls),
               isMatmul);
  if (matmuls.size() < 5)
    return 256;
  auto up = [](int64_t n) { return (n + 127) / 128 * 128; };
  const GraphTensor &scores = graph.tensors.at(matmuls[0].y);
  const GraphTensor &keys = graph.tensors.at(matmuls[0].b);
  int64_t heads = scores.sizes[0] * scores.sizes[1];
  int64_t shared = scores.sizes[1] == keys.sizes[1] ? 0 : 4 * scores.sizes[3] * keys.sizes[2];
  bool isSummed = graph.tensors.at(matmuls.back().y).type == CUDNN_DATA_FLOAT;
  return 256 + heads * ((isSummed ? 0 : 2 * up(scores.sizes[2]) * up(scores.sizes[3])) + shared);
}

cudnnStatus_t finalizeGraph(Descriptor &descriptor) {
  for (const Shared &each : descriptor.attributes[CUDNN_ATTR_OPERATIONGRAPH_OPS].descriptors)
    descriptor.graph.operations.push_back(operationOf(descriptor.graph, *each));
  std::string problem = descriptor.graph.problem();
  return problem.empty() ? CUDNN_STATUS_SUCCESS
                         : refuse(CUDNN_STATUS_BAD_PARAM, "a graph: %s", problem.c_str());
}

} // namespace

//===-- Descriptors -------------------------------------------------------------------------===//

size_t cudnnGetVersion() { return CUDNN_VERSION; }
const char *cudnnGetErrorString(cudnnStatus_t status) {
  return status == CUDNN_STATUS_SUCCESS ? "CUDNN_STATUS_SUCCESS"
         : status / 1000 == 3           ? "CUDNN_STATUS_NOT_SUPPORTED"
         : status / 1000 == 2           ? "CUDNN_STATUS_BAD_PARAM"
                                        : "CUDNN_STATUS_EXECUTION_FAILED";
}
void cudnnGetLastErrorString(char *message, size_t size) {
  std::snprintf(message, size, "%s", lastMessage.c_str());
  lastMessage.clear();
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
  *handle = new cudnnContext;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t *descriptor) {
  auto made = std::make_shared<Descriptor>();
  made->type = type;
  *descriptor = new Shared(made);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  delete static_cast<Shared *>(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void *values) {
  Descriptor &to = *of(descriptor);
  if (to.finalized)
    return refuse(CUDNN_STATUS_BAD_PARAM, "attribute %d of a finalized descriptor", name);
  auto wanted = std::find_if(std::begin(kWanted), std::end(kWanted), [&](const Wanted &each) {
    return each.descriptor == to.type && each.name == name;
  });
  if (wanted == std::end(kWanted) || wanted->type != type)
    return refuse(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE,
                  "attribute %d of type %d of a descriptor %d", name, type, to.type);
  Attribute attribute{type, {}, {}};
  const char *bytes = static_cast<const char *>(values);
  attribute.bytes.assign(bytes, bytes + size_t(count) * sizeOf(type));
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
    for (int64_t i = 0; i < count; ++i) {
      auto handle = static_cast<cudnnBackendDescriptor_t const *>(values)[i];
      if (!of(handle)->finalized)
        return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "attribute %d is not finalized", name);
      attribute.descriptors.push_back(*static_cast<Shared *>(handle));
    }
  to.attributes[name] = attribute;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  Descriptor &made = *of(descriptor);
  for (const Wanted &each : kWanted)
    if (each.descriptor == made.type && !each.optional && !made.has(each.name))
      return refuse(CUDNN_STATUS_BAD_PARAM, "a descriptor %d without attribute %d", made.type,
                    each.name);
  if (made.type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)
    if (cudnnStatus_t status = finalizeGraph(made))
      return status;
  if (made.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
    const Descriptor &config = *made.link(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    if (config.engine == kUnbuildable)
      return cannot(CUDNN_STATUS_NOT_SUPPORTED, "this engine cannot be built");
    made.graph = config.graph;
    made.engine = config.engine;
    made.workspace = workspaceOf(made.graph);
    ++plans;
  }
  made.finalized = true;
  return CUDNN_STATUS_SUCCESS;
}

/// Writes the configurations that the heuristics propose, at most `requested` of them.
static int64_t propose(const Descriptor &heuristics, int64_t requested, void *values) {
  const Graph &graph = heuristics.link(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)->graph;
  int64_t count = isSupported(graph) ? std::min<int64_t>(requested, kEngines) : 0;
  for (int64_t i = 0; i < count; ++i) {
    Descriptor &config = *of(static_cast<cudnnBackendDescriptor_t *>(values)[i]);
    config.engine = i;
    config.graph = graph;
    config.finalized = true;
  }
  return count;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t, int64_t requested,
                                       int64_t *count, void *values) {
  const Descriptor &from = *of(descriptor);
  if (!from.finalized)
    return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "attribute %d is asked for too early",
                  name);
  *count = 1;
  if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) {
    *count = propose(from, requested, values);
  } else if (name == CUDNN_ATTR_ENGINECFG_ENGINE) {
    Descriptor &engine = *of(*static_cast<cudnnBackendDescriptor_t *>(values));
    engine.engine = from.engine;
    engine.finalized = true;
  } else if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE) {
    auto *notes = static_cast<cudnnBackendNumericalNote_t *>(values);
    notes[0] = CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    if (from.engine == kUnordered)
      notes[(*count)++] = CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
  } else if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) {
    std::memcpy(values, &from.workspace, 8);
  } else {
    return refuse(CUDNN_STATUS_BAD_PARAM, "attribute %d cannot be asked for", name);
  }
  return CUDNN_STATUS_SUCCESS;
}

//===-- Execution ---------------------------------------------------------------------------===//

/// Finds the memory of a graph's tensors; copies of scalars are kept in `numbers`.
static cudnnStatus_t findData(const Graph &graph, const Descriptor &pack, bool onDevice,
                              std::map<int64_t, void *> &data, std::map<int64_t, float> &numbers) {
  const Attribute &ids = pack.attributes.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const Attribute &pointers = pack.attributes.at(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  if (ids.bytes.size() != pointers.bytes.size())
    return refuse(CUDNN_STATUS_BAD_PARAM, "%zu numbers of tensors and %zu pointers",
                  ids.bytes.size() / 8, pointers.bytes.size() / 8);
  for (size_t i = 0; i < ids.bytes.size(); i += 8) {
    int64_t id = 0;
    void *pointer = nullptr;
    std::memcpy(&id, &ids.bytes[i], 8);
    std::memcpy(&pointer, &pointers.bytes[i], 8);
    data[id] = pointer;
  }
  for (const auto &[id, tensor] : graph.tensors) {
    if (tensor.isVirtual)
      continue;
    auto found = data.find(id);
    if (found == data.end() || !found->second)
      return refuse(CUDNN_STATUS_BAD_PARAM, "tensor %lld has no pointer", (long long)id);
    if (tensor.byValue) {
      std::memcpy(&numbers[id], found->second, 4);
      continue;
    }
    if (reinterpret_cast<uintptr_t>(found->second) % uint64_t(tensor.alignment) != 0)
      return refuse(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER, "tensor %lld", (long long)id);
    if (onDevice && !reachable(found->second, size_t(tensor.span() * tensor.elementBytes())))
      return refuse(CUDNN_STATUS_EXECUTION_FAILED, "tensor %lld: %s", (long long)id,
                    describe(found->second).c_str());
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
  const Descriptor &made = *of(plan);
  if (!made.finalized || !of(pack)->finalized)
    return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "a plan, or its pack");
  std::map<int64_t, void *> data;
  std::map<int64_t, float> numbers;
  if (cudnnStatus_t status =
          findData(made.graph, *of(pack), handle->stream != nullptr, data, numbers))
    return status;
  void *workspace = of(pack)->get<void *>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  auto bytes = size_t(made.workspace);
  if (!workspace || (handle->stream && !reachable(workspace, bytes)))
    return refuse(CUDNN_STATUS_EXECUTION_FAILED, "%zu bytes of workspace: %s", bytes,
                  describe(workspace).c_str());
  ++executions;
  unordered += made.engine == kUnordered;
  largestWorkspace = std::max<int64_t>(largestWorkspace, made.workspace);
  auto run = [graph = made.graph, data, numbers, workspace, bytes]() mutable {
    for (auto &[id, number] : numbers)
      data[id] = &number;
    std::memset(workspace, 0x7f, bytes);
    compute(graph, data);
  };
  return enqueue(handle->stream, "cudnnBackendExecute", run) == cudaSuccess
             ? CUDNN_STATUS_SUCCESS
             : CUDNN_STATUS_EXECUTION_FAILED;
}

CudnnCounters simulated::cudnnCounters() {
  return {plans, executions, largestWorkspace, unordered};
}
