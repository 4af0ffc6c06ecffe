//===- TokenScores.cpp - finds outputs with one score per token --------------------------------===//
//
// A dimension runs along the tokens if it is dimension 1 of the token input, or if an op's rule
// gives it the letter of an operand's dimension that does.
//
//===----------------------------------------------------------------------------------------------===//

#include "lib/Objective/TokenScores.h"
#include "dialects/Interfaces/Interfaces.h"
#include "dialects/Par/Placement.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace partita;

namespace {

class TokenDimensions {
public:
  TokenDimensions(func::FuncOp forward, unsigned tokens) {
    set(forward.getArgument(tokens), 1);
    for (Operation &op : forward.getBody().front().without_terminator())
      if (isa<ShardInterface>(op))
        follow(&op);
  }

  bool has(Value value, unsigned dim) const {
    auto known = dims.find(value);
    return known != dims.end() && known->second.test(dim);
  }

private:
  void set(Value value, unsigned dim) {
    llvm::SmallBitVector &bits = dims[value];
    bits.resize(cast<RankedTensorType>(value.getType()).getRank());
    bits.set(dim);
  }

  void follow(Operation *op) {
    std::string error;
    const ShardRule *rule = par::ruleOf(op, error);
    SmallVector<int64_t> sizes;
    if (!rule || !par::letterSizes(*rule, op, sizes, error))
      return;
    llvm::SmallBitVector letters(sizes.size());
    for (auto [pattern, operand] : llvm::zip(rule->operands, op->getOperands()))
      for (auto [i, dim] : llvm::enumerate(pattern.dims))
        if (int letter = onlyLetter(dim, sizes); letter >= 0 && has(operand, i))
          letters.set(letter);
    for (auto [pattern, result] : llvm::zip(rule->results, op->getResults()))
      for (auto [i, dim] : llvm::enumerate(pattern.dims))
        if (int letter = onlyLetter(dim, sizes); letter >= 0 && letters.test(letter))
          set(result, i);
  }

  /// Returns the only letter of a dimension, ignoring letters of size one, or -1.
  static int onlyLetter(const RuleDim &dim, ArrayRef<int64_t> sizes) {
    int only = -1;
    for (unsigned letter : dim.letters)
      if (dim.letters.size() == 1 || sizes[letter] != 1) {
        if (only >= 0)
          return -1;
        only = static_cast<int>(letter);
      }
    return dim.isPart() || dim.perShard ? -1 : only;
  }

  llvm::DenseMap<Value, llvm::SmallBitVector> dims;
};

} // namespace

SmallVector<unsigned> objective::findTokenScores(func::FuncOp forward, unsigned tokens) {
  TokenDimensions runsAlongTokens(forward, tokens);
  SmallVector<unsigned> found;
  for (auto [i, value] :
       llvm::enumerate(forward.getBody().front().getTerminator()->getOperands())) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (type && type.getRank() == 2 && isa<FloatType>(type.getElementType()) &&
        runsAlongTokens.has(value, 1))
      found.push_back(i);
  }
  return found;
}
