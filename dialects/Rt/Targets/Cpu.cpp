//===- Cpu.cpp - the target "cpu" -------------------------------------------------------------===//
//
// Plain loops and BLAS; ranks are threads, or processes of MPI. A call has finished its work when
// it returns, so the program's text reads numbers in memory directly: `*{}`.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Rt/Rt.h"
#include "dialects/Rt/Targets/Targets.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

namespace {

class Cpu final : public Target {
public:
  StringRef getName() const override { return "cpu"; }

  /// Chooses as many tokens and columns as keep matmuls fast and a block in the cache, with the
  /// tokens in even parts.
  ClassifierWork getClassifierLoss(const ClassifierSizes &sizes) const override {
    constexpr uint64_t most = 512;
    constexpr int64_t columns = 512;
    uint64_t all = static_cast<uint64_t>(sizes.tokens);
    int64_t rows = static_cast<int64_t>(llvm::divideCeil(all, llvm::divideCeil(all, most)));
    if (sizes.rows)
      rows = std::min(sizes.rows, partita_rt::kMostClassifierRows);
    return {{rows, columns}, columns};
  }

  /// At most twice as many tokens as fit the cache well form one block. A 16-bit dx is computed in
  /// float32.
  ClassifierWork getClassifierGradient(const ClassifierSizes &sizes) const override {
    std::array<int64_t, 2> block = getClassifierLoss(sizes).block;
    int64_t floats = static_cast<int64_t>(llvm::alignTo(sizes.vocabulary, block[1])) + block[1] +
                     (sizes.xElement.isF32() ? 0 : sizes.width);
    return chooseClassifierGradient(sizes, block, floats, /*mayBeOne=*/sizes.tokens <= 1024);
  }

  int64_t getAttentionStepWorkspace(int64_t queries) const override {
    return partita_rt::attentionStepWorkspaceOnCpu(queries);
  }
  int64_t getAttentionGradWorkspace(const partita_rt::AttentionWork &work) const override {
    return partita_rt::attentionWorkspaceOnCpu(work);
  }

  std::string tensorRows(const std::string &table, const std::string &some) const override {
    return "tensorRows(" + table + some + ")";
  }
  CallArgument exactStep(Value t, partita_rt::ExactSteps exact) const override {
    return {"ExactSteps" + stepsText(exact) + ".contains(*{})", t};
  }
  CallArgument reported(StringRef) const override { return "rank"; }
  std::string scalar(double factor) const override {
    return factor == 1 ? "*{}" : "*{} * " + doubleLiteral(factor);
  }
  std::string hyperparameter(StringRef field) const override {
    return ("rank.hyper." + field).str();
  }
  std::string roundingKey(const std::string &arguments) const override {
    return "roundingKey(rank, " + arguments + ")";
  }

protected:
  StringRef number() const override { return "*{}"; }
  std::string holder(StringRef type) const override { return type.str(); }
  std::string elementNumber(int64_t elements, bool hasFirst) const override {
    return "*{} * " + std::to_string(elements) + (hasFirst ? " + *{}" : "");
  }
};

} // namespace

const Target &rt::cpuTarget() {
  static const Cpu target;
  return target;
}
