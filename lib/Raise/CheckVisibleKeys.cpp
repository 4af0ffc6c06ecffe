//===- CheckVisibleKeys.cpp - refuses attention in which a query sees no key ------------------===//
//
// For every attention whose bias depends on nothing, the bias is evaluated, once per head or sample if these differ: at
// each query's own place, and for all keys where the query does not see that. A key is visible, hidden by a finite number
// (softmax of nothing else is a mean over all such keys), or hidden by -inf (softmax of nothing else is NaN). Of its best
// key,
//   1. the model's own masks must leave a query more than -inf, unless the model yields zeros there (`zero_hidden`);
//   2. the blocks of a sparse layout must leave it one that is as good.
//
//===------------------------------------------------------------------------------------------===//

#include "lib/Raise/Sight.h"
#include "partita/Raise/Passes.h"
#include "partita/Raise/Subgraph.h"
#include "partita/Support/HiddenScores.h"
#include <cmath>
#include <set>

namespace partita {
#define GEN_PASS_DEF_CHECKVISIBLEKEYS
#include "partita/Raise/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using namespace partita::raise;

namespace {

/// Elements of a row that take as long as one alone.
constexpr int64_t elementCost = 32;

enum Visibility { HiddenByInfinity, HiddenByNumber, Visible };

Visibility visibilityOf(double number) {
  if (number == -std::numeric_limits<double>::infinity())
    return HiddenByInfinity;
  return number < kHiddenBelow ? HiddenByNumber : Visible; // NaN is no mask's
}

/// The best of some keys, and the first that is as good.
struct BestKey {
  Visibility visibility = HiddenByInfinity;
  int64_t key = -1;
  void add(Visibility each, int64_t j) {
    if (key >= 0 && each <= visibility)
      return;
    visibility = each;
    key = j;
  }
};

/// What one query sees.
struct SeenKeys {
  BestKey ofMasks, ofBlocks;
  int64_t computed = 0, first = -1, last = -1; ///< keys of the blocks, that causal and window show
};

class KeyChecker {
public:
  explicit KeyChecker(tx::AttentionOp op)
      : op(op), sight(op), queries(op.getQ().getType().getDimSize(1)),
        keys(op.getK().getType().getDimSize(1)) {}
  /// Emits an error for the first query that sees nothing.
  LogicalResult run();

private:
  /// Do the op's blocks, if it has any, compute key j for query i?
  bool isComputed(int64_t head, int64_t i, int64_t j);
  /// Does a query see the key at its own place? Then the others need not be looked at.
  bool seesItself(int64_t sample, int64_t head, int64_t i);
  SeenKeys look(ArrayRef<double> numbers, int64_t head, int64_t i);
  LogicalResult check(int64_t sample, int64_t head, int64_t i, const SeenKeys &seen);
  /// "query 3", with the head and the sample where these differ.
  std::string nameOf(int64_t sample, int64_t head, int64_t i);

  tx::AttentionOp op;
  Sight sight;
  int64_t queries, keys, samples = 1, heads = 1;
};

struct CheckVisibleKeysPass : partita::impl::CheckVisibleKeysBase<CheckVisibleKeysPass> {
  using Base::Base;
  void runOnOperation() override;
};

} // namespace

bool KeyChecker::isComputed(int64_t head, int64_t i, int64_t j) {
  tx::BlocksAttr blocks = op.getBlocksAttr();
  if (!blocks)
    return true;
  int64_t size = blocks.getSize();
  return partita_rt::isComputed(blocks.patternOf(head).rows(size, keys / size), int32_t(i / size),
                                int32_t(j / size));
}

bool KeyChecker::seesItself(int64_t sample, int64_t head, int64_t i) {
  int64_t j = i + keys - queries;
  if (j < 0 || !sight.isShown(i, j) || !isComputed(head, i, j))
    return false;
  std::optional<double> number = sight.element(sample, head, i, j);
  return number && visibilityOf(*number) == Visible;
}

SeenKeys KeyChecker::look(ArrayRef<double> numbers, int64_t head, int64_t i) {
  int64_t size = op.getBlocksAttr() ? op.getBlocksAttr().getSize() : keys;
  SeenKeys seen;
  for (int64_t begin = 0; begin < keys; begin += size) {
    bool isOfBlocks = isComputed(head, i, begin);
    for (int64_t j = begin; j < begin + size; ++j) {
      if (!sight.isShown(i, j))
        continue;
      seen.ofMasks.add(visibilityOf(numbers[j]), j);
      if (!isOfBlocks)
        continue;
      seen.ofBlocks.add(visibilityOf(numbers[j]), j);
      seen.last = j;
      if (seen.computed++ == 0)
        seen.first = j;
    }
  }
  return seen;
}

std::string KeyChecker::nameOf(int64_t sample, int64_t head, int64_t i) {
  std::string name = "query " + std::to_string(i);
  if (heads > 1)
    name += " of head " + std::to_string(head);
  if (samples > 1)
    name += " of sample " + std::to_string(sample);
  return name;
}

LogicalResult KeyChecker::check(int64_t sample, int64_t head, int64_t i, const SeenKeys &seen) {
  if (seen.ofMasks.visibility == HiddenByInfinity) {
    if (op.getZeroHidden() || seen.ofMasks.key < 0)
      return success();
    return op.emitError()
           << "attention: " << nameOf(sample, head, i)
           << " sees no key: the model's own mask adds -inf to all of its scores, whose softmax is NaN; "
              "let each query see a key in the model, or mask by a finite number";
  }
  if (seen.ofBlocks.visibility >= seen.ofMasks.visibility)
    return success();
  return op.emitError()
         << "sparse attention: " << nameOf(sample, head, i) << " sees no key: the layout computes "
         << seen.computed << " keys, of " << seen.first << " to " << seen.last
         << ", and the model's own mask hides them; choose a layout that computes key "
         << seen.ofMasks.key << ", which the mask shows, or leave --sparse-attention out";
}

LogicalResult KeyChecker::run() {
  tx::BlocksAttr blocks = op.getBlocksAttr();
  samples = sight.samples();
  heads =
      blocks && blocks.getPatterns().size() > 1 ? op.getQ().getType().getDimSize(2) : sight.heads();
  int64_t left = kMostMaskElements; // what is left of longer masks is not checked
  for (int64_t sample = 0; sample < samples; ++sample)
    for (int64_t head = 0; head < heads; ++head)
      for (int64_t i = 0; i < queries; ++i) {
        if ((left -= elementCost) < 0)
          return success();
        if (seesItself(sample, head, i))
          continue;
        if ((left -= keys) < 0)
          return success();
        std::optional<std::vector<double>> numbers = sight.row(sample, head, i);
        if (!numbers)
          return success();
        if (failed(check(sample, head, i, look(*numbers, head, i))))
          return failure();
      }
  return success();
}

void CheckVisibleKeysPass::runOnOperation() {
  Independent independent(getOperation());
  // Layers share a mask.
  std::set<std::tuple<void *, const void *, bool, int64_t, bool>> known;
  WalkResult result = getOperation().walk([&](tx::AttentionOp op) {
    Value bias = op.getBias();
    if (!bias || !independent.contains(bias))
      return WalkResult::advance();
    bool isNew = known
                     .insert({bias.getAsOpaquePointer(),
                              Attribute(op.getBlocksAttr()).getAsOpaquePointer(), op.getCausal(),
                              static_cast<int64_t>(op.getWindow().value_or(0)), op.getZeroHidden()})
                     .second;
    if (!isNew)
      return WalkResult::advance();
    ++numChecks;
    return failed(KeyChecker(op).run()) ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (result.wasInterrupted())
    signalPassFailure();
}
