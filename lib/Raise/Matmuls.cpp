//===- Matmuls.cpp ----------------------------------------------------------------------------===//

#include "partita/Raise/Matmuls.h"
#include "dialects/Train/Train.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace partita;
using namespace partita::raise;

bool raise::isBetween(Operation *op) { return isa<ScalarInterface, tx::CastOp, tx::ReshapeOp>(op); }

tx::BatchMatMulOp raise::findScores(Value masked, const Independent &independent) {
  if (auto scores = masked.getDefiningOp<tx::BatchMatMulOp>())
    return scores;
  tx::BatchMatMulOp scores;
  growBackward(
      masked, isBetween, [](Value) { return false; }, independent,
      [&](const Subgraph &subgraph) {
        for (Value leaf : subgraph.leaves)
          if (auto matmul = leaf.getDefiningOp<tx::BatchMatMulOp>())
            scores = matmul;
        return true;
      });
  return scores;
}

tx::BatchMatMulOp raise::findMatmul(tx::SoftmaxOp softmax, IsInterior isInterior) {
  for (Value weights : findExits(softmax, isInterior))
    for (Operation *user : weights.getUsers())
      if (auto matmul = dyn_cast<tx::BatchMatMulOp>(user); matmul && matmul.getA() == weights)
        return matmul;
  return {};
}

static bool isBetweenOrTranspose(Operation *op) {
  return isBetween(op) || isa<tx::TransposeOp>(op);
}

std::string raise::explainAxis(tx::SoftmaxOp softmax, const Independent &independent) {
  if (!findMatmul(softmax, isBetweenOrTranspose))
    return "";
  std::string problem;
  growBackward(
      softmax.getX(), isBetweenOrTranspose, [](Value) { return false; }, independent,
      [&](const Subgraph &subgraph) {
        if (!llvm::any_of(subgraph.leaves,
                          [](Value leaf) { return bool(leaf.getDefiningOp<tx::BatchMatMulOp>()); }))
          return true;
        for (Operation *op : subgraph.ops)
          if (auto transpose = dyn_cast<tx::TransposeOp>(op)) {
            int64_t rank = transpose.getType().getRank(),
                    axis = transpose.getPermutation()[rank - 1];
            problem = axis == rank - 1
                          ? "between its scores and its softmax stands tx.transpose"
                          : llvm::formatv("its softmax runs along dimension {0} of {1} of the "
                                          "scores, it would be along the last one, the keys",
                                          axis, rank)
                                .str();
          }
        return problem.empty();
      });
  return problem;
}

/// Is it a parameter or a constant, in whatever layout?
static bool isWeight(Value value, const Independent &independent) {
  while (Operation *op = value.getDefiningOp()) {
    if (isa<train::ReadOp>(op) || independent.contains(value))
      return true;
    if (!isa<tx::TransposeOp, tx::ReshapeOp, tx::BroadcastOp, tx::CastOp, tx::SliceOp>(op))
      return false;
    value = op->getOperand(0);
  }
  return false;
}

/// Of ops in block order: the last one that is no sum, product or choice of what is made of
/// `scores`.
static Operation *findFunction(ArrayRef<Operation *> ops, Value scores) {
  llvm::DenseSet<Value> made{scores};
  Operation *found = nullptr;
  for (Operation *op : ops) {
    if (llvm::none_of(op->getOperands(), [&](Value operand) { return made.contains(operand); }))
      continue;
    made.insert(op->getResult(0));
    bool isOfOne = op->getNumOperands() == 1 || isa<tx::MaxOp, tx::PowOp>(op);
    if (isOfOne && !isa<tx::NegOp, tx::CastOp, tx::ReshapeOp>(op))
      found = op;
  }
  return found;
}

Operation *raise::findOtherWeights(tx::BatchMatMulOp matmul, const Independent &independent) {
  Operation *other = nullptr;
  if (isWeight(matmul.getB(), independent))
    return nullptr;
  growBackward(
      matmul.getA(), isBetween, [](Value) { return false; }, independent,
      [&](const Subgraph &subgraph) {
        for (Value leaf : subgraph.leaves)
          if (auto scores = leaf.getDefiningOp<tx::BatchMatMulOp>();
              scores && !isWeight(scores.getB(), independent))
            other = findFunction(subgraph.ops, scores);
        return true;
      });
  return other;
}
