//===- BiasHeads.cpp - where a rank takes its heads of a bias ---------------------------------------===//
//
// A rank whose attention has some of the heads needs those of a bias alone. It takes them as early as the ops that make the
// bias can work on them: of the slopes of ALiBi rather than of a score for each pair of positions, of a table of relative
// positions rather than of what is looked up in it. What is made from there on is smaller by the number of ranks, and so is the
// gradient that is gathered, if one has to be.
//
//===------------------------------------------------------------------------------------------------===//

#include "dialects/Par/Placement.h"
#include "lib/Partition/ContextParallel.h"
#include "lib/Partition/Propagation.h"

using namespace mlir;
using namespace partita;

/// Returns the letter of the dimension, if shards of the op's operands make a shard of it in so many blocks.
static std::optional<unsigned> headLetter(const ShardRule &rule, unsigned dim, int64_t blocks) {
  const RuleDim &heads = rule.results.front().dims[dim];
  if (heads.letters.size() != 1 || heads.isPart() || heads.perShard)
    return {};
  const RuleLetter &letter = rule.letters[heads.letters.front()];
  if (letter.never || letter.byForm || letter.max || letter.lacksFirstIndex ||
      !par::allows(letter, par::Blocks::equal(blocks, /*mirrored=*/false)))
    return {};
  return heads.letters.front();
}

SmallVector<std::pair<unsigned, unsigned>>
partita::operandsWithHeads(const Propagation &propagation, Operation *op, unsigned dim,
                           int64_t blocks) {
  if (auto narrow = dyn_cast<par::NarrowOp>(op)) // of another dimension: in either order
    return narrow.getDim() == dim ? SmallVector<std::pair<unsigned, unsigned>>()
                                  : SmallVector<std::pair<unsigned, unsigned>>{{0, dim}};
  if (op->getNumResults() != 1 || op->getNumRegions() != 0 || !propagation.hasRuleOf(op))
    return {};
  const ShardRule &rule = propagation.ruleOf(op);
  std::optional<unsigned> letter = headLetter(rule, dim, blocks);
  if (!letter)
    return {};
  SmallVector<std::pair<unsigned, unsigned>> found;
  for (auto [operand, pattern] : llvm::enumerate(rule.operands)) {
    int at = pattern.dimOf(*letter);
    if (at < 0)
      continue;
    if (pattern.dims[at].letters.size() != 1 || pattern.dims[at].isPart())
      return {};
    found.emplace_back(operand, at);
  }
  return found;
}

namespace {

/// Moves the narrows of one axis that give attentions the heads of their biases.
class BiasHeads {
public:
  BiasHeads(const Propagation &propagation, StringAttr axis)
      : propagation(propagation), axis(axis) {}

  void run(func::FuncOp function) {
    function.walk([&](tx::AttentionOp op) {
      auto narrow = op.getBias() ? op.getBias().getDefiningOp<par::NarrowOp>() : par::NarrowOp();
      if (narrow && narrow.getAxisAttr() == axis && narrow.getDim() == 1)
        open.insert(narrow.getValue());
    });
    while (!open.empty())
      moveBefore(open.pop_back_val());
  }

private:
  /// Returns a narrow of the value that stands for all its uses, if each of them is one like it.
  static par::NarrowOp onlyNarrow(Value value) {
    par::NarrowOp first;
    for (Operation *user : value.getUsers()) {
      auto narrow = dyn_cast<par::NarrowOp>(user);
      if (!narrow || (first && narrow->getAttrs() != first->getAttrs()))
        return {};
      first = narrow;
    }
    return first;
  }

  /// Has the op nothing of the heads in this dimension from its operands? It then repeats a value for each of them.
  bool repeats(Value value, unsigned dim, int64_t blocks) const {
    auto op = value.getDefiningOp<tx::BroadcastOp>();
    return op && value.hasOneUse() && propagation.hasRuleOf(op) &&
           operandsWithHeads(propagation, op, dim, blocks).empty();
  }

  void moveBefore(Value value) {
    Operation *op = value.getDefiningOp();
    par::NarrowOp narrow = op ? onlyNarrow(value) : par::NarrowOp();
    if (!narrow || narrow.getAxisAttr() != axis)
      return;
    auto operands = operandsWithHeads(propagation, op, narrow.getDim(), narrow.getBlocks());
    // A broadcast follows the op's other operands, since all have the same heads.
    llvm::erase_if(operands, [&](auto &each) {
      return repeats(op->getOperand(each.first), each.second, narrow.getBlocks());
    });
    if (operands.empty())
      return;
    for (auto [number, dim] : operands)
      op->setOperand(number, narrowed(op->getOperand(number), dim, narrow));
    for (Operation *user : llvm::make_early_inc_range(value.getUsers())) {
      user->getResult(0).replaceAllUsesWith(value);
      user->erase();
    }
  }

  Value narrowed(Value value, unsigned dim, par::NarrowOp like) {
    open.insert(value);
    OpBuilder builder(like.getContext());
    builder.setInsertionPointAfterValue(value);
    return par::NarrowOp::create(builder, like.getLoc(), value.getType(), value, axis,
                                 builder.getI64IntegerAttr(dim), like.getBlocksAttr(), StringAttr(),
                                 UnitAttr());
  }

  const Propagation &propagation;
  StringAttr axis;
  llvm::SetVector<Value> open;
};

} // namespace

void partita::takeHeadsEarly(func::FuncOp function, const Propagation &propagation,
                             StringAttr axis) {
  BiasHeads(propagation, axis).run(function);
}
