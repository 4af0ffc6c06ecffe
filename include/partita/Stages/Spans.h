//===- Spans.h - what ranges of layers cost -------------------------------------------*- C++ -*-===//
//
// `note-costs` measures the stages of programs that are cut into spans of one and of two layers. A
// longer range costs as much as the spans of two layers in it, less the spans of one in which two of
// those overlap:
//
//   cost(a b c d) = cost(a b) + cost(b c) + cost(c d) - cost(b) - cost(c)
//
// So whatever two neighbors save or add if they are on one stage counts (kernels that span both, a
// value that both need and the stage computes once), and so does what a stage has at its ends. Two
// things are not known from spans: what layers further apart have in common, without those in
// between; and, with several chunks per stage, which of them adds up the cotangents of a value that
// they pass on.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_STAGES_SPANS_H
#define PARTITA_STAGES_SPANS_H

#include "mlir/IR/BuiltinOps.h"
#include "partita/Stages/Schedule.h"

namespace partita::stages {

/// What one micro-batch costs on a stage that has the layers `first` to `last`.
struct Span {
  int64_t first = 0, last = 0;
  SlotCosts costs;
  bool splits = false; ///< the gradients of weights have a pass of their own
};

/// Set and read the module's train.spans.
void noteSpans(mlir::ModuleOp module, llvm::ArrayRef<Span> spans);
std::vector<Span> notedSpans(mlir::ModuleOp module);

/// Costs of ranges of layers, from those of spans of one and of two.
class RangeCosts {
public:
  explicit RangeCosts(llvm::ArrayRef<Span> spans);

  bool isEmpty() const { return joined.front().size() < 2; }
  /// Returns what the layers [begin, end) cost as the `range`-th part of the model.
  SlotCosts of(int64_t range, int64_t begin, int64_t end) const;
  /// Returns the sum over all kinds of pass.
  double sumOf(int64_t range, int64_t begin, int64_t end) const;

private:
  /// Sums from the first layer to each; of spans of one layer, and of two.
  using Sums = std::vector<SlotCosts>;
  /// For stages that have one backward pass, and for those that split it.
  std::array<Sums, 2> single, joined;
  bool splits = false; ///< all ranges but the first, which sends no cotangent
};

} // namespace partita::stages

#endif // PARTITA_STAGES_SPANS_H
