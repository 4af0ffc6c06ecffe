// Matmuls by cuBLASLt: which algorithm a matmul is made with, and the call.
//
// Each shape's descriptors and algorithm are found once and kept. The algorithm is the tuning
// file's if that has the shape, else the first of cuBLASLt's suggestions that needs no more than
// the workspace: both depend on the shape, the device and the library's version alone. So do the
// bits, as NVIDIA promises of cublasLtMatmul with a workspace of its own; what is more, an
// algorithm that splits k must add the parts up in float, in an order of its own (reduction schemes
// "none" and "compute type"): the other schemes round sums to the result's type on the way.
//
// Tuning (tuning.cpp): beginRecording, a step, tuneRecorded, which tries the suggestions on the
// operands of the step, and writeChoices; readChoices in later runs.

#ifndef PARTITA_RT_CUDA_PRODUCTS_H
#define PARTITA_RT_CUDA_PRODUCTS_H

#include "partita_rt/cuda/stream.h"
#include "partita_rt/kernels.h"

#include <cublasLt.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace partita_rt::cuda {

/// What is done to a matmul before it is stored, by the same kernel.
enum class Epilogue : uint8_t {
  None,
  Bias,         ///< + vector[n]
  BiasGelu,     ///< aux = + vector[n]; C = GELU(aux), in the tanh form
  GeluGrad,     ///< times the GELU's derivative at aux
  SumA,         ///< vector[m] = sums of op(A)'s rows
  SumB,         ///< vector[n] = sums of op(B)'s columns
  GeluGradSums, ///< GeluGrad; vector[n] = sums of C's columns
};

/// What an algorithm is chosen for. Matrices are row-major, sizes and strides in elements.
struct ProductShape {
  DType a, b, c; ///< c: also of vector and aux
  Trans transA, transB;
  Epilogue epilogue = Epilogue::None;
  int64_t m, n, k;
  int64_t lda, ldb, ldc;
  int64_t ldAux = 0;
  int64_t ldAddend = 0; ///< 0: what is added to is C
  int64_t batch = 1, strideA = 0, strideB = 0, strideC = 0;
  /// Bytes that the addresses of A, B, C, vector, aux and addend are multiples of, 16 at most.
  int64_t alignment[6] = {16, 16, 16, 16, 16, 16};

  /// "bfloat16[256, 768] * bfloat16[768, 3072]^T -> ...": one text per shape.
  std::string text() const;
};
bool operator<(const ProductShape &left, const ProductShape &right);

struct ProductOperands {
  float alpha;
  const void *a, *b;
  float beta;
  void *c;
  void *vector = nullptr, *aux = nullptr; ///< what the epilogue reads or writes
  const void *addend = nullptr;           ///< where the shape has one
};

/// A matmul and what follows it by kernels of their own, on the same operands.
using Apart = std::function<void(const Stream &)>;

/// An algorithm for a shape.
struct Choice {
  std::string shape; ///< ProductShape::text
  cublasLtMatmulAlgo_t algorithm;
  int64_t nanoseconds; ///< as measured
  int64_t first;       ///< those of cuBLASLt's first suggestion
  bool apart = false;  ///< kernels of their own are faster; the algorithm is none
  /// The fastest of either kind, as tuning has just measured them; -1: there is none.
  int64_t oneKernel = -1, kernelsApart = -1;
};

class Products {
public:
  /// On the current device. workspace: device memory, 256-byte aligned, for matmuls of one stream
  /// at a time; kProductsWorkspace bytes.
  Products(void *workspace, int64_t workspaceBytes);
  ~Products();
  Products(const Products &) = delete;
  Products &operator=(const Products &) = delete;

  /// C = alpha op(A) op(B) + beta C, or beta times the addend, and the epilogue. m, n, k and batch
  /// are positive; the types are those of isDirect (shapes.h). False: cuBLASLt cannot do this
  /// epilogue at such a shape, or `apart` is faster, and nothing has been done. Throws Error, with
  /// the shape, on everything else that fails. Tuning calls `apart` later, with these operands.
  bool multiply(const Stream &stream, const ProductShape &shape, const ProductOperands &operands,
                const Apart &apart = {});

  //===-- Tuning ----------------------------------------------------------------------------===//

  /// From here on the matmuls made are remembered, with their operands.
  void beginRecording();
  /// The fastest of cuBLASLt's suggestions for each of them, and of the kernels apart, by the median
  /// of `repetitions` measurements (at least one), in use from now on. Waits, and may not be
  /// captured; leaves anything in the results' memory, so the run must not go on with it.
  std::vector<Choice> tuneRecorded(const Stream &stream, int repetitions);

  /// The choices in use that tuneRecorded has made or that were read: a file's text, JSON, which
  /// names the device and cuBLASLt's version. To be sent to other ranks as well.
  std::string choicesText() const;
  /// Uses choices. `from` stands in messages: a file's path, or "rank 0's products". Throws Error
  /// if they were made for another device or version, or are damaged. Before the first product.
  void useChoices(const std::string &text, const std::string &from);

  void writeChoices(const std::string &path) const;
  /// False: there is no such file.
  bool readChoices(const std::string &path);

private:
  struct Plan;
  struct Recorded {
    ProductOperands operands;
    Apart apart;
  };
  Plan &planOf(const ProductShape &shape, const ProductOperands &operands);
  std::vector<cublasLtMatmulHeuristicResult_t> suggestions(const Plan &plan, int most) const;
  void choose(Plan &plan);
  void setPointers(Plan &plan, void *vector, void *aux) const;
  /// Does cuBLASLt take the algorithm for the plan? workspace: the bytes that it needs.
  cublasStatus_t checkAlgorithm(const Plan &plan, const cublasLtMatmulAlgo_t &algorithm,
                                size_t &workspace) const;
  cublasStatus_t launch(const Stream &stream, const Plan &plan,
                        const cublasLtMatmulAlgo_t &algorithm,
                        const ProductOperands &operands) const;
  Choice tune(const Stream &stream, Plan &plan, const Recorded &product, int repetitions);

  cublasLtHandle_t handle = nullptr;
  void *workspace;
  int64_t workspaceBytes;
  std::string device; ///< its name and number of multiprocessors
  int multiprocessors;
  std::map<ProductShape, std::unique_ptr<Plan>> plans;
  std::map<std::string, Choice> choices;
  std::string choicesFrom = "the tuning"; ///< what messages call the choices' file
  bool recording = false;
  std::map<ProductShape, Recorded> recorded;
};

/// products_file.cpp: choices as text.
struct ChoicesFile {
  std::string device;
  int64_t version;
  std::vector<Choice> choices;
};
std::string writeChoicesText(const ChoicesFile &file);
ChoicesFile parseChoicesText(const std::string &text, const std::string &from);

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_PRODUCTS_H
