//===- Forms.cpp - other ops where a size is in the way of a split ----------------------------===//

#include "lib/Partition/Forms.h"
#include "dialects/Interfaces/Interfaces.h"

using namespace mlir;
using namespace partita;

/// The form for so many parts of an op that a size is in the way of; none of one that has a letter
/// marked '!': it is in nobody's way, and partition-split-forms gives it its form.
static SmallVector<Value> formOf(Operation *op, OpBuilder &builder, int64_t parts) {
  std::string error;
  auto rule = par::ruleOf(op, error);
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

/// Has the op a form for so many parts? What it builds to answer is removed again.
static bool hasForm(Operation *op, int64_t parts) {
  OpBuilder builder(op);
  Operation *before = op->getPrevNode();
  bool any = !formOf(op, builder, parts).empty();
  while (op->getPrevNode() != before)
    op->getPrevNode()->erase();
  return any;
}

std::string Forms::divisors(const Attempt &attempt) {
  std::string text;
  for (int64_t parts = 1; parts <= 1024; ++parts)
    if (attempt.indivisible % parts == 0 ||
        llvm::any_of(attempt.ops, [&](Operation *op) { return hasForm(op, parts); }))
      text += (text.empty() ? "" : ", ") + std::to_string(parts);
  return text;
}
