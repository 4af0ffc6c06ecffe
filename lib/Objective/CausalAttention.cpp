//===- CausalAttention.cpp - finds out whether attention hides later tokens -------------------===//
//
// Evaluates what is added to the score of the first query and the key after its own, as for samples
// without padding: inputs, from which masks of padding are made, are one; everything else that
// depends on data or parameters (scores and learned biases) is zero. A causal mask in any spelling
// makes this minus infinity or close to it.
//
//===------------------------------------------------------------------------------------------===//

#include "lib/Objective/CausalAttention.h"
#include "dialects/Tx/Tx.h"
#include "partita/Raise/IndexEvaluator.h"
#include "partita/Raise/Matmuls.h"
#include "partita/Support/HiddenScores.h"

using namespace mlir;
using namespace partita;
using namespace partita::raise;

namespace {

bool isMatrix(Value value) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
  return shape.size() >= 2 && shape.back() > 1 && shape[shape.size() - 2] > 1;
}

/// Returns true if data may decide by this value which keys a query sees: an input that is itself a
/// mask of queries and keys, or a comparison of positions from an input.
bool maySay(Value value, bool isLeaf) {
  if (isLeaf)
    return isa<BlockArgument>(value) && isMatrix(value) &&
           cast<RankedTensorType>(value.getType()).getRank() > 2;
  return isMatrix(value) &&
         isa_and_nonnull<tx::LessOp, tx::LessEqualOp, tx::GreaterOp, tx::GreaterEqualOp>(
             value.getDefiningOp());
}

/// Returns whether `masked`, scores or what is added to them, hides the key after its own from the
/// first query; nothing if that is unknown.
std::optional<bool> hidesNext(Value masked, const Independent &independent) {
  IndexEvaluator evaluator;
  SmallVector<Value> pending{masked};
  llvm::DenseSet<Value> seen;
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    if (independent.contains(value) || !seen.insert(value).second)
      continue;
    Operation *op = value.getDefiningOp();
    bool isLeaf = !op || !isa<ScalarInterface, tx::CastOp, tx::ReshapeOp, tx::BroadcastOp,
                              tx::TransposeOp, tx::SliceOp>(op);
    if (maySay(value, isLeaf))
      return std::nullopt;
    if (isLeaf)
      evaluator.assume(value, isa<BlockArgument>(value) ? 1 : 0);
    else
      pending.append(op->operand_begin(), op->operand_end());
  }
  ArrayRef<int64_t> shape = cast<RankedTensorType>(masked.getType()).getShape();
  if (shape.size() < 2)
    return false;
  int64_t queries = shape[shape.size() - 2], keys = shape.back();
  SmallVector<int64_t> index(shape.size());
  index.back() = queries == 1 ? 1 : keys - queries + 1; // keys before the first query's are cached
  if (index.back() < 0 || index.back() >= keys)
    return std::nullopt;
  std::optional<double> number = evaluator.element(masked, index);
  if (!number)
    return std::nullopt;
  return *number < kHiddenBelow;
}

std::optional<bool> isCausal(Operation *op, const Independent &independent) {
  if (auto attention = dyn_cast<tx::AttentionOp>(op)) {
    if (attention.getCausal())
      return true;
    return attention.getBias() ? hidesNext(attention.getBias(), independent) : false;
  }
  return hidesNext(cast<tx::SoftmaxOp>(op).getX(), independent);
}

} // namespace

SmallVector<Operation *> objective::findOpenAttentions(func::FuncOp function) {
  Independent independent(function);
  SmallVector<Operation *> open;
  WalkResult result = function.walk([&](Operation *op) {
    auto softmax = dyn_cast<tx::SoftmaxOp>(op);
    if (!isa<tx::AttentionOp>(op) &&
        !(softmax && findScores(softmax.getX(), independent) && isMatrix(softmax.getX())))
      return WalkResult::advance();
    if (isCausal(op, independent).value_or(true))
      return WalkResult::interrupt();
    open.push_back(op);
    return WalkResult::advance();
  });
  return result.wasInterrupted() ? SmallVector<Operation *>() : open;
}
