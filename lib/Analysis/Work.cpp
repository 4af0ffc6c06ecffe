//===- Work.cpp - how much an op has to do ----------------------------------------------------===//
//
// FLOPs by the shard rule: its letters are the op's dimensions. A letter that one tensor alone has
// is looked up, not walked through (the vocabulary of an embedding). Of the rest, two tensors of
// which one has at most one letter that the other lacks are walked together: q and k share all but
// the queries and the keys, while q and v have nothing to do with each other directly.
//
//===------------------------------------------------------------------------------------------===//

#include "partita/Analysis/Work.h"
#include "dialects/Interfaces/Interfaces.h"
#include "dialects/Par/Par.h"
#include "dialects/Par/Placement.h"
#include "dialects/Rt/Rt.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace partita;
using namespace partita::analysis;

/// Every letter of the pattern, once.
static llvm::SmallBitVector lettersOf(const RulePattern &pattern, unsigned count) {
  llvm::SmallBitVector letters(count);
  for (const RuleDim &dim : pattern.dims)
    for (unsigned letter : dim.letters)
      letters.set(letter);
  return letters;
}

static int64_t flopsOf(Operation *op) {
  std::string error;
  const ShardRule *rule = isa<ShardInterface>(op) ? par::ruleOf(op, error) : nullptr;
  if (!rule)
    return 0;
  SmallVector<ArrayRef<int64_t>> operandShapes, resultShapes;
  for (Type type : op->getOperandTypes())
    operandShapes.push_back(cast<RankedTensorType>(type).getShape());
  for (Type type : op->getResultTypes())
    resultShapes.push_back(cast<RankedTensorType>(type).getShape());
  SmallVector<int64_t> sizes;
  if (!rule->letterSizes(operandShapes, resultShapes, sizes, error))
    return 0;
  SmallVector<llvm::SmallBitVector> tensors;
  for (auto *patterns : {&rule->operands, &rule->results})
    for (const RulePattern &pattern : *patterns)
      tensors.push_back(lettersOf(pattern, sizes.size()));
  for (unsigned letter = 0; letter < sizes.size(); ++letter)
    if (llvm::count_if(tensors, [&](auto &letters) { return letters.test(letter); }) == 1)
      for (llvm::SmallBitVector &letters : tensors)
        letters.reset(letter);
  double most = 0;
  for (const llvm::SmallBitVector &a : tensors)
    for (const llvm::SmallBitVector &b : tensors) {
      llvm::SmallBitVector onlyA = a, both = a;
      onlyA.reset(b);
      if (onlyA.count() > 1)
        continue;
      both |= b;
      double points = 1;
      for (unsigned letter : both.set_bits())
        points *= static_cast<double>(std::max<int64_t>(1, sizes[letter]));
      most = std::max(most, points);
    }
  double matmuls = static_cast<double>(cast<ShardInterface>(op).getMatmuls());
  return static_cast<int64_t>(std::min(2 * matmuls * most, 1e18));
}

bool analysis::isView(Operation *op) {
  auto kernel = dyn_cast<rt::KernelInterface>(op);
  if (!kernel || op->getNumOperands() != 1 || op->getNumResults() != 1)
    return false;
  auto operand = dyn_cast<RankedTensorType>(op->getOperand(0).getType());
  return operand && operand.hasStaticShape() &&
         kernel.viewOfOperand(rt::View::dense(operand.getShape()));
}

Work analysis::workOf(Operation *op) {
  if (op->getNumOperands() == 0 || isa<par::ParDialect>(op->getDialect()))
    return {};
  auto isPlain = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.hasStaticShape() && tensor.getElementType().isIntOrFloat();
  };
  if (!llvm::all_of(op->getOperandTypes(), isPlain) || !llvm::all_of(op->getResultTypes(), isPlain))
    return {};
  if (isView(op))
    return {};
  Work work;
  work.flops = flopsOf(op);
  if (op->hasTrait<OpTrait::IsIsolatedFromAbove>())
    op->walk([&](Operation *inner) { // what is elementwise takes as long as its bytes do
      if (!isa<ScalarInterface>(inner))
        work.flops += flopsOf(inner);
    });
  for (TypeRange types : {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())})
    for (Type type : types) {
      auto tensor = cast<RankedTensorType>(type);
      work.bytes += tensor.getNumElements() * rt::elementBytes(tensor.getElementType());
    }
  return work;
}
