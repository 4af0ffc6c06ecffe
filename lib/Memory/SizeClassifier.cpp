//===- SizeClassifier.cpp - size-classifier -----------------------------------------------------===//

#include "dialects/Rt/Rt.h"
#include "dialects/Rt/Target.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "partita/Analysis/IdleOptions.h"
#include "partita/Memory/Ledger.h"
#include "partita/Memory/Passes.h"
#include "llvm/Support/Threading.h"

namespace partita {
#define GEN_PASS_DEF_SIZECLASSIFIERPASS
#include "partita/Memory/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using rt::ClassifierSizes;
using rt::ClassifierWork;
using rt::RtDialect;
using rt::Target;

namespace {

/// How many tokens each classifier takes at once, in the order of the program.
using RowCounts = SmallVector<int64_t>;

bool isGradient(Operation *op) { return isa<tx::ClassifierLossGradOp>(op); }

bool isClassifier(Operation *op) { return isa<tx::ClassifierLossOp, tx::ClassifierLossGradOp>(op); }

/// Returns those whose size the program does not say yet.
SmallVector<Operation *> classifiersOf(ModuleOp module) {
  SmallVector<Operation *> found;
  module.walk([&](Operation *op) {
    if (isClassifier(op) && !op->hasAttr(RtDialect::kRows))
      found.push_back(op);
  });
  return found;
}

ClassifierWork workOf(Operation *op, int64_t rows) {
  ClassifierSizes sizes = ClassifierSizes::of(op);
  sizes.rows = std::min(rows, sizes.tokens);
  const Target &target = Target::of(op);
  return isGradient(op) ? target.getClassifierGradient(sizes) : target.getClassifierLoss(sizes);
}

/// Returns the bytes of the largest classifier's logits and their cotangents.
int64_t largestBlock(ArrayRef<Operation *> ops, const RowCounts &sizes) {
  int64_t bytes = 0;
  for (auto [op, rows] : llvm::zip(ops, sizes))
    if (isGradient(op))
      bytes = std::max(bytes, 4 * workOf(op, rows).workspaceFloats());
  return bytes;
}

/// Sets the sizes that are not the target's; returns how many these are.
int64_t setSizes(ArrayRef<Operation *> ops, const RowCounts &sizes) {
  int64_t count = 0;
  for (auto [op, rows] : llvm::zip(ops, sizes)) {
    if (rows == workOf(op, 0).tokens())
      continue;
    op->setAttr(RtDialect::kRows, Builder(op->getContext()).getI64IntegerAttr(rows));
    ++count;
  }
  return count;
}

struct SizeClassifier : partita::impl::SizeClassifierPassBase<SizeClassifier> {
  using SizeClassifierPassBase::SizeClassifierPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    ops = classifiersOf(module);
    bool hasAny = module
                      .walk([](Operation *op) {
                        return isClassifier(op) ? WalkResult::interrupt() : WalkResult::advance();
                      })
                      .wasInterrupted();
    if (rows > 0 && !hasAny) {
      if (failed(analysis::reportIdle(
              module, "classifier-rows",
              "no loss is computed with its classifier: there is none, or its "
              "vocabulary is split over tp, it has a bias, or the model reads its "
              "logits itself")))
        signalPassFailure();
      return;
    }
    usual.clear();
    for (Operation *op : ops)
      usual.push_back(workOf(op, 0).tokens());
    RowCounts chosen = rows > 0 ? given() : choose();
    if (!chosen.empty())
      sized += setSizes(ops, chosen);
  }

private:
  RowCounts given() {
    return llvm::map_to_vector(ops, [&](Operation *op) {
      return std::min<int64_t>(rows, ClassifierSizes::of(op).tokens);
    });
  }

  /// Returns other sizes than the target's, or nothing.
  RowCounts choose() {
    ModuleOp module = getOperation();
    auto attribute = module->getAttrOfType<IntegerAttr>(RtDialect::kMemoryLimit);
    limit = attribute ? std::optional(attribute.getInt()) : std::nullopt;
    std::vector<RowCounts> larger = multiples();
    if (ops.empty() || (larger.empty() && !limit))
      return {};
    std::optional<int64_t> needed = measure({});
    if (!needed) // plan-memory reports why
      return {};
    if (limit && *needed > *limit)
      return shrink(*needed);
    int64_t most = limit ? *limit : *needed + *needed / 100 * share;
    for (RowCounts &sizes : llvm::reverse(larger))
      if (largestBlock(ops, sizes) <= most)
        if (std::optional<int64_t> bytes = measure(sizes); bytes && *bytes <= most)
          return std::move(sizes);
    return {};
  }

  /// Returns the sizes from which a target gains: the usual ones of gradients times 2, 4, ..., until they are all tokens.
  std::vector<RowCounts> multiples() {
    std::vector<RowCounts> all;
    if (!Target::of(getOperation()).gainsByClassifierRows())
      return all;
    for (int64_t by = 2;; by *= 2) {
      RowCounts sizes = usual;
      bool isLarger = false;
      for (auto [op, rows] : llvm::zip(ops, sizes)) {
        int64_t tokens = ClassifierSizes::of(op).tokens;
        if (!isGradient(op) || rows * (by / 2) >= tokens)
          continue;
        rows = std::min(rows * by, tokens);
        isLarger = true;
      }
      if (!isLarger)
        return all;
      all.push_back(std::move(sizes));
    }
  }

  /// Returns the largest sizes below the usual ones that are within the limit; if none are, those that need least, so
  /// that what is refused is reported with them. The first halving may save nothing: two blocks need sums of the
  /// weight's gradient, one does not.
  RowCounts shrink(int64_t needed) {
    constexpr int64_t least = 8; // to multiples of which GPUs round
    RowCounts sizes = usual, smallest;
    while (llvm::any_of(sizes, [](int64_t rows) { return rows > least; })) {
      for (int64_t &rows : sizes)
        if (rows > least)
          rows = std::max<int64_t>(llvm::divideCeilSigned(rows, 2), least);
      std::optional<int64_t> bytes = measure(sizes);
      if (!bytes)
        return {};
      if (*bytes <= *limit)
        return sizes;
      if (*bytes < needed) {
        needed = *bytes;
        smallest = sizes;
      }
    }
    return smallest;
  }

  /// Returns the bytes of device memory that a rank needs with these sizes; with the target's, if there are none.
  std::optional<int64_t> measure(const RowCounts &sizes) {
    ++planned;
    OwningOpRef<ModuleOp> copy = getOperation().clone();
    if (!sizes.empty())
      setSizes(classifiersOf(*copy), sizes);
    // The program's own plan reports what is wrong with it. Other stages may report at the same time.
    ScopedDiagnosticHandler quiet(&getContext(), [self = llvm::get_threadid()](Diagnostic &) {
      return success(llvm::get_threadid() == self);
    });
    PassManager manager(&getContext(), ModuleOp::getOperationName());
    manager.enableVerifier(false);
    manager.addPass(createPlanMemory());
    if (limit && Target::of(*copy).takesScratch() && failed(parsePassPipeline(lower, manager)))
      return {};
    if (failed(manager.run(*copy)))
      return {};
    return memory::deviceBytes(memory::deviceSizes(*copy));
  }

  SmallVector<Operation *> ops;
  RowCounts usual; ///< the target's
  std::optional<int64_t> limit;
};

} // namespace
