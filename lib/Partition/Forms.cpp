//===- Forms.cpp - other ops where a size prevents a split ------------------------------------===//

#include "lib/Partition/Forms.h"
#include "dialects/Interfaces/Interfaces.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace partita;

/// Builds the form, for that many parts, of an op that a size prevents from being split. Returns
/// none for an op with a letter marked '!' or '^!': partition-split-forms gives it its form, since
/// that is another way to split it.
static SmallVector<Value> formOf(Operation *op, OpBuilder &builder, int64_t parts) {
  std::string error;
  const ShardRule *rule = par::ruleOf(op, error);
  if (!rule || llvm::any_of(rule->letters, [](const RuleLetter &each) { return each.byForm; }))
    return {};
  return cast<ShardInterface>(op).splitForm(builder, parts);
}

bool Forms::find(const Attempt &attempt, int64_t parts) {
  bool found = false;
  for (Operation *op : attempt.ops) {
    if (!forms.contains(op)) {
      OpBuilder builder(op);
      SmallVector<Value> results = formOf(op, builder, parts);
      if (results.empty())
        continue;
      forms.insert({op, std::move(results)});
    }
    found = true;
  }
  return found;
}

unsigned Forms::apply() {
  unsigned count = forms.size();
  for (auto &[op, results] : forms) {
    op->replaceAllUsesWith(results);
    op->erase();
  }
  forms.clear();
  return count;
}

/// Returns true if the op has a form for that many parts. Builds it to find out, and erases it
/// again.
static bool hasForm(Operation *op, int64_t parts) {
  OpBuilder builder(op);
  Operation *before = op->getPrevNode();
  bool any = !formOf(op, builder, parts).empty();
  while (op->getPrevNode() != before)
    op->getPrevNode()->erase();
  return any;
}

bool Forms::exist(const Attempt &attempt, int64_t parts) {
  return llvm::any_of(attempt.ops, [&](Operation *op) { return hasForm(op, parts); });
}

SmallVector<int64_t> Forms::divisors(const Attempt &attempt) {
  SmallVector<int64_t> result;
  for (int64_t parts = 1; parts <= 1024; ++parts)
    if (attempt.indivisible % parts == 0 || exist(attempt, parts))
      result.push_back(parts);
  return result;
}

std::string Forms::reason(const Attempt &attempt, int64_t parts) {
  for (Operation *op : attempt.ops)
    if (auto sharded = dyn_cast<ShardInterface>(op))
      if (auto dealt = sharded.dealtOut(); dealt && dealt->second % parts != 0)
        return llvm::formatv("is split by its {0} {1}, which do not divide", dealt->second,
                             dealt->first)
            .str();
  return llvm::formatv("is split together with a dimension of size {0}, which does not divide",
                       attempt.indivisible)
      .str();
}
