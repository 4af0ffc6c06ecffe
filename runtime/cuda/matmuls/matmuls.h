// Matmuls with cuBLASLt: the choice of an algorithm, and the call.
//
// Each shape's descriptors and algorithm are found once and kept. The algorithm is the tuning
// file's if that has the shape, else the first of cuBLASLt's suggestions that fits into the
// workspace: both depend only on the shape, the device and the library's version. So do the bits,
// as NVIDIA promises for cublasLtMatmul with a workspace of its own. In addition, an algorithm that
// splits k must add the partial sums in float, in its own order (reduction schemes "none" and
// "compute type"): the other schemes round sums to the result's type on the way.
//
// Tuning (tuning.cpp): beginRecording, a step, tuneRecorded, which tries the suggestions on the
// operands of the step, and writeChoices; readChoices in later runs.

#ifndef PARTITA_RT_CUDA_MATMULS_MATMULS_H
#define PARTITA_RT_CUDA_MATMULS_MATMULS_H

#include "partita_rt/cuda/stream.h"
#include "partita_rt/kernels.h"

#include <cublasLt.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace partita_rt::cuda {

/// An operation on a matmul's result before it is stored, in the same kernel.
enum class Epilogue : uint8_t {
  None,
  Bias,         ///< + vector[n]
  BiasGelu,     ///< GELU(+ vector[n]), in the tanh form
  BiasGeluAux,  ///< BiasGelu; aux = its argument
  GeluGrad,     ///< times the GELU's derivative at aux
  SumA,         ///< vector[m] = sums of op(A)'s rows
  SumB,         ///< vector[n] = sums of op(B)'s columns
  GeluGradSums, ///< GeluGrad; vector[n] = sums of C's columns
};

/// The shape that an algorithm is chosen for. Matrices are row-major, sizes and strides in
/// elements.
struct MatmulShape {
  DType a, b, c; ///< c: also the type of vector and aux
  Trans transA, transB;
  Epilogue epilogue = Epilogue::None;
  int64_t m, n, k;
  int64_t lda, ldb, ldc;
  int64_t ldAux = 0;
  int64_t ldAddend = 0; ///< 0: the addend is C
  int64_t batch = 1, strideA = 0, strideB = 0, strideC = 0;
  /// Alignments in bytes of the addresses of A, B, C, vector, aux and addend, 16 at most.
  int64_t alignment[6] = {16, 16, 16, 16, 16, 16};

  /// Returns "matmul bfloat16[256, 768] by 768 * bfloat16[3072, 768] by 768 transposed -> ...":
  /// unique per shape.
  std::string text() const;
};
/// Does the matmul have operands in 8 bits?
bool isScaled(const MatmulShape &shape);
bool operator<(const MatmulShape &left, const MatmulShape &right);

struct MatmulOperands {
  float alpha;
  const void *a, *b;
  float beta;
  void *c;
  void *vector = nullptr, *aux = nullptr;           ///< operands of the epilogue
  const void *addend = nullptr;                     ///< if the shape has one
  const float *scaleA = nullptr, *scaleB = nullptr; ///< of 8-bit operands, in device memory
};

/// Runs a matmul and its epilogue as separate kernels, on the same operands.
using Apart = std::function<void(const Stream &)>;

/// The algorithm chosen for a shape.
struct Choice {
  std::string shape; ///< MatmulShape::text
  cublasLtMatmulAlgo_t algorithm;
  int64_t nanoseconds; ///< measured
  int64_t first;       ///< of cuBLASLt's first suggestion
  bool apart = false;  ///< separate kernels are faster; no algorithm
  /// The fastest of either kind, as tuning has just measured; -1: there is none.
  int64_t oneKernel = -1, kernelsApart = -1;
};

/// The choices for one kind of device and one version of cuBLASLt.
struct DeviceChoices {
  std::string device; ///< name and number of multiprocessors
  int64_t version;
  std::vector<Choice> choices;
};

class Matmuls {
public:
  /// Uses the current device. workspace: device memory, 256-byte aligned, for matmuls of one stream
  /// at a time; kMatmulWorkspace bytes.
  Matmuls(void *workspace, int64_t workspaceBytes);
  ~Matmuls();
  Matmuls(const Matmuls &) = delete;
  Matmuls &operator=(const Matmuls &) = delete;

  /// C = alpha op(A) op(B) + beta C, or beta times the addend, and the epilogue. m, n, k and batch
  /// are positive; the types satisfy isDirect (shapes.h). Returns false, without doing anything, if
  /// cuBLASLt cannot do this epilogue at such a shape, or `apart` is faster. Throws Error, with the
  /// shape, on any other failure. Tuning calls `apart` later, with these operands.
  bool multiply(const Stream &stream, const MatmulShape &shape, const MatmulOperands &operands,
                const Apart &apart = {});

  //===-- Tuning ----------------------------------------------------------------------------===//

  /// Starts recording matmuls, with their operands.
  void beginRecording();
  /// Chooses the fastest of cuBLASLt's suggestions and of the separate kernels for each recorded
  /// matmul, by the median of `repetitions` measurements (at least one), and uses it from now on.
  /// Waits, and cannot be captured; the results' memory has arbitrary contents afterwards, so the
  /// run must not continue with it.
  std::vector<Choice> tuneRecorded(const Stream &stream, int repetitions);

  /// Returns the current choices that tuneRecorded made or that were read: a file's text, JSON,
  /// which names the device and cuBLASLt's version. Also sent to other ranks.
  std::string choicesText() const;
  /// Uses the choices for this device and version among those of the text. `from` names their
  /// source in messages: a file's path, or "rank 0's matmuls". Returns false if there are none for
  /// it, which whyUntuned then explains. Throws Error if the text is damaged. Call it before the
  /// first matmul.
  bool useChoices(const std::string &text, const std::string &from);
  /// "matmuls.json is for NVIDIA H200, 132 multiprocessors with cuBLASLt 130002, and this is ...";
  /// "" without such choices.
  const std::string &whyUntuned() const { return mismatch; }
  /// Returns how many of the shapes so far have no choice although others have; 0 without choices.
  int64_t countWithoutChoice() const;

  /// Writes the current choices into the file, in place of those for this device and version only.
  void writeChoices(const std::string &path) const;
  /// Like useChoices. Returns false if there is no such file, too.
  bool readChoices(const std::string &path);

private:
  struct Plan;
  struct Recorded {
    MatmulOperands operands;
    Apart apart;
  };
  Plan &planOf(const MatmulShape &shape, const MatmulOperands &operands);
  std::vector<cublasLtMatmulHeuristicResult_t> suggestions(const Plan &plan, int most) const;
  void choose(Plan &plan);
  void setPointers(Plan &plan, const MatmulOperands &operands) const;
  /// Does cuBLASLt accept the algorithm for the plan? Sets `workspace` to the bytes that it needs.
  cublasStatus_t checkAlgorithm(const Plan &plan, const cublasLtMatmulAlgo_t &algorithm,
                                size_t &workspace) const;
  cublasStatus_t launch(const Stream &stream, const Plan &plan,
                        const cublasLtMatmulAlgo_t &algorithm,
                        const MatmulOperands &operands) const;
  Choice tune(const Stream &stream, Plan &plan, const Recorded &matmul, int repetitions);
  DeviceChoices ours() const;
  bool isHere(const DeviceChoices &tuning) const; ///< for this device and version?
  void use(const DeviceChoices &tuning, const std::string &from);
  std::vector<DeviceChoices> othersIn(const std::string &path) const;

  cublasLtHandle_t handle = nullptr;
  void *workspace;
  int64_t workspaceBytes;
  std::string device; ///< name and number of multiprocessors
  int multiprocessors;
  std::map<MatmulShape, std::unique_ptr<Plan>> plans;
  std::map<std::string, Choice> choices;
  std::string choicesFrom = "the tuning"; ///< the name of the choices' source in messages
  std::string mismatch;                   ///< whyUntuned
  bool recording = false;
  std::map<MatmulShape, Recorded> recorded;
};

/// The text form of tunings (matmuls_file.cpp).
std::string writeTunings(const std::vector<DeviceChoices> &tunings);
std::vector<DeviceChoices> parseTunings(const std::string &text, const std::string &from);

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_MATMULS_MATMULS_H
