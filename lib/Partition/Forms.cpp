//===- Forms.cpp - other ops where a size is in the way of a split ----------------------------===//

#include "lib/Partition/Forms.h"
#include "dialects/Interfaces/Interfaces.h"
#include "dialects/Tx/Tx.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace partita;

/// What is repeated along a dimension of its own, which then joins the one in front (key heads,
/// written out for all queries that share them): where `parts` divide the joint dimension and not
/// the one in front, every rank has all of that and repeats what its own piece holds.
static SmallVector<Value> repeated(tx::ReshapeOp joins, OpBuilder &builder, int64_t parts) {
  auto spread = joins.getX().getDefiningOp<tx::BroadcastOp>();
  RankedTensorType type = joins.getType();
  if (!spread || !isa<FloatType>(type.getElementType()))
    return {};
  SmallVector<int64_t> few(spread.getX().getType().getShape());
  ArrayRef<int64_t> many = spread.getType().getShape();
  if (few.size() != many.size())
    return {};
  auto [at, times] = std::mismatch(few.begin(), few.end(), many.begin());
  int64_t dim = at - few.begin();
  if (at == few.end() || dim == 0 || *at != 1 || few[dim - 1] % parts == 0)
    return {};
  int64_t count = *times;
  few.erase(few.begin() + dim);
  SmallVector<int64_t> joint(few);
  joint[dim - 1] *= count;
  if (ArrayRef(joint) != type.getShape() || joint[dim - 1] % parts != 0)
    return {};
  Value distinct = tx::ReshapeOp::create(builder, joins.getLoc(), type.clone(few), spread.getX());
  return {tx::RepeatOp::create(builder, joins.getLoc(), type, distinct, /*first=*/Value(), dim - 1,
                               count)};
}

/// The form for so many parts of an op that a size is in the way of; none of one that has a letter
/// marked '!': it is in nobody's way, and partition-split-forms gives it its form.
static SmallVector<Value> formOf(Operation *op, OpBuilder &builder, int64_t parts) {
  std::string error;
  auto rule = par::ruleOf(op, error);
  if (!rule || llvm::any_of(rule->letters, [](const RuleLetter &each) { return each.byForm; }))
    return {};
  if (auto joins = dyn_cast<tx::ReshapeOp>(op))
    return repeated(joins, builder, parts);
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
