//===- Flops.cpp - how much a program computes ------------------------------------------------===//
//
// A rule's letters are the dimensions of the space that an op works on. A letter that is summed
// away and stands in two operands makes it a contraction: two operations per point. Of the others
// those count that compute: elementwise ops and reductions, by what they read.
//
//===------------------------------------------------------------------------------------------===//

#include "partita/Analysis/Flops.h"
#include "dialects/Interfaces/Interfaces.h"
#include "dialects/Par/Placement.h"

using namespace mlir;
using namespace partita;

static double elements(ValueRange values) {
  double most = 0;
  for (Value value : values)
    if (auto type = dyn_cast<RankedTensorType>(value.getType()))
      most = std::max(most, double(par::wholeType(type).getNumElements()));
  return most;
}

/// The product of the sizes of all letters of a contraction; nothing of another op.
static std::optional<double> contraction(Operation *op, const ShardRule &rule) {
  bool contracts = false;
  for (unsigned letter = 0; letter < rule.letters.size(); ++letter)
    contracts |= rule.letters[letter].summed &&
                 llvm::count_if(rule.operands, [&](const RulePattern &pattern) {
                   return pattern.contains(letter);
                 }) > 1;
  if (!contracts)
    return std::nullopt;
  SmallVector<int64_t> sizes;
  std::string error;
  if (!par::letterSizes(rule, op, sizes, error))
    return std::nullopt;
  double points = 1;
  for (int64_t size : sizes)
    points *= std::max<double>(size, 1);
  return points;
}

Flops partita::countFlops(Operation *root) {
  Flops flops;
  root->walk([&](ShardInterface shard) {
    Operation *op = shard;
    std::string error;
    std::optional<ShardRule> rule = par::ruleOf(op, error);
    if (!rule)
      return;
    bool reduces = llvm::any_of(rule->letters, [](const RuleLetter &each) { return each.summed; });
    if (std::optional<double> points = contraction(op, *rule))
      flops.products += 2 * *points;
    else if (reduces || isa<ScalarInterface>(op))
      flops.elementwise += elements(op->getOperands());
  });
  return flops;
}
