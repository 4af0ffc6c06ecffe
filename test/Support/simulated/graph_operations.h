// A graph of the simulated cuDNN: tensors of four dimensions, and operations between them, which
// are computed one after another, each to completion.

#ifndef PARTITA_TEST_SIMULATED_GRAPH_OPERATIONS_H
#define PARTITA_TEST_SIMULATED_GRAPH_OPERATIONS_H

#include <cudnn_graph.h>

#include <array>
#include <map>
#include <string>
#include <vector>

namespace simulated {

using Sizes = std::array<int64_t, 4>;

struct GraphTensor {
  int64_t id = -1, alignment = 1;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  Sizes sizes{}, strides{};
  bool isVirtual = false, byValue = false;

  int64_t elementBytes() const;
  int64_t span() const; ///< elements from the first to the last
};

/// y = operation of x and b, each an id of a tensor; -1: unused by this operation.
struct GraphOperation {
  cudnnBackendDescriptorType_t kind; ///< CUDNN_BACKEND_OPERATION_...
  int mode = 0;                      ///< cudnnPointwiseMode_t or cudnnReduceTensorOp_t
  int64_t axis = -1;
  int64_t x = -1, b = -1, condition = -1, y = -1;
};

struct Graph {
  std::map<int64_t, GraphTensor> tensors;
  std::vector<GraphOperation> operations;

  /// Returns the problem with the graph, or "": incompatible sizes, values used before they are
  /// computed, computed twice, or never.
  std::string problem() const;
};

/// data: one pointer per tensor that is not virtual.
void compute(const Graph &graph, const std::map<int64_t, void *> &data);

} // namespace simulated

#endif // PARTITA_TEST_SIMULATED_GRAPH_OPERATIONS_H
