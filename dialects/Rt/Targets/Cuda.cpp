//===- Cuda.cpp - the target "cuda" -----------------------------------------------------------===//
//
// NVIDIA GPUs: a process per GPU, collectives by NCCL, matmuls by cuBLASLt. Calls queue work on a
// stream, and what a step has computed stays on the GPU: kernels are passed its address.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Rt/Rt.h"
#include "dialects/Rt/Targets/Targets.h"
#include "runtime/include/partita_rt/cuda/shapes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

namespace {

class Cuda final : public Target {
public:
  StringRef getName() const override { return "cuda"; }

  /// Architectures that kernels are written for (bfloat16 in hardware, asynchronous copies) and
  /// that the newest nvcc knows.
  ArrayRef<StringLiteral> getArchitectures() const override {
    static constexpr StringLiteral known[] = {"sm_80",  "sm_86",  "sm_87",  "sm_88",
                                              "sm_89",  "sm_90",  "sm_100", "sm_103",
                                              "sm_110", "sm_120", "sm_121"};
    return known;
  }
  StringRef getDefaultArchitecture() const override { return "sm_90"; }
  bool ranksAreProcesses() const override { return true; }
  bool sendsOverRings() const override { return true; } // NCCL's

  bool fusesMatmuls() const override { return true; }
  bool multipliesRowsIn8Bits() const override { return true; } // those of sm_89 and sm_90
  bool pollsCollectives() const override { return false; }     // the GPU makes progress by itself
  bool queuesWork() const override { return true; }
  bool tunesMatmuls() const override { return true; }

  bool takesScratch() const override { return true; }
  int64_t getMatmulWorkspace() const override { return partita_rt::cuda::kMatmulWorkspace; }

  /// Matmuls on tensor cores take rows of 16 bytes; with other vocabularies each would be two.
  int64_t padClassifier(int64_t rows, Type element) const override {
    bool isEven = elementBytes(element) != 2 || rows % 8 == 0;
    return isEven ? rows : static_cast<int64_t>(llvm::alignTo(rows, 64));
  }
  /// Each block reads and writes the sums of the weight's gradient.
  bool gainsByClassifierRows() const override { return true; }
  ClassifierWork getClassifierLoss(const ClassifierSizes &sizes) const override {
    return {block(sizes, 4 << 10), floatsPerToken(sizes)};
  }
  /// Logits become their gradient in place.
  ClassifierWork getClassifierGradient(const ClassifierSizes &sizes) const override {
    return chooseClassifierGradient(sizes, block(sizes, 8 << 10), floatsPerToken(sizes),
                                    /*mayBeOne=*/true);
  }

  int64_t getAttentionStepWorkspace(int64_t queries) const override {
    return partita_rt::attentionStepWorkspaceOnCuda(queries);
  }
  int64_t getAttentionGradWorkspace(const partita_rt::AttentionWork &work) const override {
    return partita_rt::attentionWorkspaceOnCuda(work);
  }

  /// The host counts the rows' blocks; the kernel reads its own copy of the table.
  std::string tensorRows(const std::string &table, const std::string &some) const override {
    return "tensorRows(" + table + ", " + table + "OnDevice" + some + ")";
  }
  /// The number is on the GPU, and the rank knows it too.
  CallArgument exactStep(Value, partita_rt::ExactSteps exact) const override {
    return "stepIsExact(rank, " + stepsText(exact) + ")";
  }
  CallArgument reported(StringRef field) const override {
    return ("&rank.device->report->" + field).str();
  }
  std::string scalar(double factor) const override {
    return factor == 1 ? "{}" : "Scalar({}, " + doubleLiteral(factor) + ")";
  }
  std::string hyperparameter(StringRef field) const override {
    return ("&rank.device->control->hyper." + field).str();
  }
  std::string roundingKey(const std::string &arguments) const override {
    return "Scalar::roundingKey(rank.device->control, " + arguments + ")";
  }

protected:
  StringRef number() const override { return "{}"; }
  std::string holder(StringRef type) const override { return (type + "At").str(); }
  std::string elementNumber(int64_t elements, bool hasFirst) const override {
    return "ElementAt{{{}, " + std::to_string(elements) + (hasFirst ? ", {}}" : "}");
  }

private:
  static int64_t stride(const ClassifierSizes &sizes) {
    return partita_rt::cuda::classifierStride(sizes.inMemory());
  }
  static int64_t floatsPerToken(const ClassifierSizes &sizes) { // of logits in w's type
    return static_cast<int64_t>(llvm::divideCeil(stride(sizes) * elementBytes(sizes.wElement), 4));
  }
  /// Chooses all logits of some tokens: `bytes` for each column. A thousand tokens keep matmuls
  /// large; gradients have four thousand in 16 bits, so that the weight's is rarely read again. A
  /// multiple of 8 keeps the columns of the transposed logits' matmuls even.
  static std::array<int64_t, 2> block(const ClassifierSizes &sizes, int64_t bytes) {
    int64_t tokens = sizes.rows ? sizes.rows : bytes / elementBytes(sizes.wElement);
    if (tokens >= sizes.tokens)
      tokens = sizes.tokens;
    else if (tokens > 8)
      tokens = tokens / 8 * 8;
    return {tokens, stride(sizes)};
  }
};

} // namespace

const Target &rt::cudaTarget() {
  static const Cuda target;
  return target;
}
