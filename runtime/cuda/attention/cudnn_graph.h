// Attention as graphs of operations that cuDNN recognizes as attention and has fused kernels for:
// the pattern to which NVIDIA's cudnn-frontend lowers `sdpa` and `sdpa_backward`, the latter with
// use_deterministic_algorithm or without.

#ifndef PARTITA_RT_CUDA_ATTENTION_CUDNN_GRAPH_H
#define PARTITA_RT_CUDA_ATTENTION_CUDNN_GRAPH_H

#include "cuda/attention/cudnn_library.h"
#include "cuda/attention/fused_library.h"

#ifdef PARTITA_RT_CUDNN

#include <deque>
#include <vector>

namespace partita_rt::cuda {

/// Operands in addition to FusedOperand's: scalars, whose pointers are host pointers.
enum CudnnOperand : int64_t {
  kCudnnScale = kFusedOperands,
  kCudnnHidden,
  kCudnnOne,
  kCudnnDqSums, ///< nondeterministic: dQ in float, to which blocks add; cuDNN clears it
  kCudnnOperands
};

class CudnnGraph {
public:
  /// Throws Error if cuDNN refuses an operation.
  CudnnGraph(const CudnnLibrary &library, const FusedShape &shape);
  CudnnGraph(const CudnnGraph &) = delete;
  CudnnGraph &operator=(const CudnnGraph &) = delete;

  const CudnnDescriptor &operations() const { return graph.back(); }
  /// The operands for which a call must pass pointers.
  const std::vector<int64_t> &operands() const { return given; }
  /// The bytes of kCudnnDqSums; 0: there is no such operand.
  int64_t dqSumsBytes() const;

private:
  using Sizes = std::array<int64_t, 4>;
  /// A tensor [batch, heads, rows, columns] of the graph.
  struct Value {
    cudnnBackendDescriptor_t tensor;
    Sizes sizes, strides;
  };
  struct Layout {
    Sizes sizes, strides;
  };
  /// `operand` -1: internal to the graph.
  Value value(int64_t operand, cudnnDataType_t type, const Layout &layout, bool number = false);
  Value own(cudnnDataType_t type, const Sizes &sizes);
  Value number(int64_t operand);
  Value statistics(int64_t operand);
  Layout heads(const FusedShape::Strides &strides, int64_t heads, int64_t rows,
               int64_t width) const;
  static Layout transposed(const Layout &layout);

  void matmul(const Value &a, const Value &b, const Value &c);
  Value matmul(const Value &a, const Value &b, cudnnDataType_t type);
  void pointwise(cudnnPointwiseMode_t mode, const Value &x, const Value *b, const Value *condition,
                 const Value &y, cudnnDataType_t math = CUDNN_DATA_FLOAT, int64_t axis = -1);
  Value pointwise(cudnnPointwiseMode_t mode, const Value &x);
  Value pointwise(cudnnPointwiseMode_t mode, const Value &x, const Value &b);
  void reduce(cudnnReduceTensorOp_t op, const Value &x, const Value &y);
  Value overRows(cudnnReduceTensorOp_t op, const Value &x);
  /// Returns the same elements in memory in another layout.
  Value relaid(const Value &x, cudnnDataType_t type, const Layout &layout);
  Value hideLaterKeys(const Value &scores);
  void addOperation(CudnnDescriptor &operation);

  void forward();
  void backward();
  void queryGradient(const Value &ds, const Value &keys, const Value &dq);
  void sumOfHeads(const Value &a, const Value &b, const Value &gradient);

  const CudnnLibrary &library;
  const FusedShape shape;
  cudnnDataType_t type; ///< the operands' type
  std::deque<CudnnDescriptor> parts;
  std::vector<cudnnBackendDescriptor_t> steps;
  std::vector<int64_t> given;
  int64_t next = kCudnnOperands; ///< number of the graph's next internal tensor
  std::deque<CudnnDescriptor> graph;
};

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDNN

#endif // PARTITA_RT_CUDA_ATTENTION_CUDNN_GRAPH_H
