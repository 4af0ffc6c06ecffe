//===- SumsRefusals.cpp - what sums with a bit per element do not go with ---------------------===//

#include "dialects/Par/Par.h"
#include "partita/Optimizer/CompressMomenta.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace partita;
using namespace partita::optimizer;

bool SumsPlan::isSummed() const {
  return llvm::any_of(batchAxes, [](auto &axis) { return axis.second > 1; });
}

std::optional<SumsRefusal> optimizer::refusalOfSums(const SumsPlan &plan) {
  constexpr StringLiteral axis = par::axisThatSplits(par::Splits::Batch);
  if (!plan.isSummed())
    return std::nullopt;
  if (plan.stage > 1)
    return SumsRefusal{"zero-stage",
                       llvm::formatv("compresses what each rank has of every gradient, in full; a "
                                     "shard is a sum already, for which ranks have sent 16 times "
                                     "the bytes; use --zero-stage 0 or 1, not {0}",
                                     plan.stage)};
  int64_t ranks = 1;
  StringRef other;
  for (auto [name, size] : plan.batchAxes) {
    ranks *= size;
    if (size > 1 && name != axis)
      other = name;
  }
  if (!other.empty())
    return SumsRefusal{"mesh", llvm::formatv("sums momenta over {0} alone, and ranks of {1} have "
                                             "samples of their own too; use --mesh {0}={2}",
                                             axis, other, ranks)};
  if (plan.scalesLoss)
    return SumsRefusal{"loss-scale",
                       "cannot take back what a sum has changed in its errors, and a loss "
                       "scale, 1 too, skips updates after the sum; leave it out, with --precision "
                       "bfloat16 or float32"};
  if (plan.keepsStatesOnHost)
    return SumsRefusal{"offload",
                       "makes what it sends from the whole momentum, in every step; leave out "
                       "--offload optimizer, which keeps it on the host"};
  if (plan.quantizesGradients)
    return SumsRefusal{"zero-quantized-gradients",
                       "keeps every sum in full on every rank, so that none is scattered; leave it "
                       "out"};
  return std::nullopt;
}

std::string optimizer::overSeveralRanks(StringRef optimizer) {
  std::string name = optimizer.str();
  llvm::replace(name, '_', '-');
  return name + " over several ranks ";
}
