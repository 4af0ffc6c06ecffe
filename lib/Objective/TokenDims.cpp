//===- TokenDims.cpp - see TokenDims.h --------------------------------------------------------===//

#include "lib/Objective/TokenDims.h"

using namespace mlir;
using namespace partita;
using namespace partita::objective;

static Factors plainFactors(int64_t size, Along along) {
  return size == 1 ? Factors() : Factors{{size, along}};
}

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

TokenDims::TokenDims(func::FuncOp function, BlockArgument ids,
                     llvm::function_ref<bool(BlockArgument)> isKnown) {
  ArrayRef<int64_t> tokens = shapeOf(ids);
  for (BlockArgument argument : function.getArguments()) {
    if (isKnown(argument))
      continue;
    ArrayRef<int64_t> shape = shapeOf(argument);
    bool isLikeIds = shape.take_front(2) == tokens; // a number or a vector per token
    SmallVector<Factors> factors;
    for (auto [i, size] : llvm::enumerate(shape))
      factors.push_back(plainFactors(size, !isLikeIds || i > 1 ? Along::Other
                                           : i == 0            ? Along::Samples
                                                               : Along::Tokens));
    set(argument, std::move(factors));
  }
}

/// Distributes a dimension's factors over its letters. False if tokens would be cut into pieces.
static bool distribute(ArrayRef<Factor> factors, const RuleDim &dim, ArrayRef<int64_t> sizes,
                       SmallVectorImpl<Factors> &letters) {
  Factors rest(factors.rbegin(), factors.rend()); // the outermost at the end
  for (unsigned letter : dim.letters) {
    Factors own;
    for (int64_t open = sizes[letter]; open > 1 && !rest.empty();) {
      Factor &next = rest.back();
      bool isWhole = open % next.size == 0;
      if (!isWhole && (next.along == Along::Tokens || next.size % open != 0))
        return !runsAlongTokens(factors);
      own.push_back({isWhole ? next.size : open, isWhole ? next.along : Along::Other});
      open /= own.back().size;
      if (isWhole)
        rest.pop_back();
      else
        next = {next.size / own.back().size, Along::Other};
    }
    if (letters[letter].empty() || runsAlongTokens(own))
      letters[letter] = own;
  }
  return true;
}

std::string TokenDims::readLetters(Operation *op, const ShardRule *&rule,
                                   SmallVectorImpl<Factors> &letters) const {
  std::string error;
  SmallVector<int64_t> sizes;
  rule = par::ruleOf(op, error);
  if (!rule || !par::letterSizes(*rule, op, sizes, error))
    return error;
  letters.assign(rule->letters.size(), {});
  for (auto [pattern, operand] : llvm::zip(rule->operands, op->getOperands())) {
    if (!isData(operand))
      continue;
    for (auto [dim, factors] : llvm::zip(pattern.dims, of(operand)))
      if (dim.isPart() ? runsAlongTokens(factors) : !distribute(factors, dim, sizes, letters))
        return "cuts the sequence into pieces";
  }
  // A letter of an operand that is no data has factors too, so that a group of letters has all of its own.
  for (auto [size, factors] : llvm::zip(sizes, letters))
    if (factors.empty())
      factors = plainFactors(std::max<int64_t>(size, 1), Along::Other);
  for (auto [letter, factors] : llvm::zip(rule->letters, letters))
    if (runsAlongTokens(factors) &&
        (letter.summed || letter.max || letter.never || letter.byForm || letter.lacksFirstIndex))
      return "computes along the tokens of a sequence";
  return "";
}

Factors objective::factorsOf(const RuleDim &dim, ArrayRef<Factors> letters) {
  Factors factors;
  for (unsigned letter : dim.letters)
    llvm::append_range(factors, letters[letter]);
  return factors;
}

void TokenDims::setResults(Operation *op, const ShardRule &rule, ArrayRef<Factors> letters) {
  for (auto [pattern, result] : llvm::zip(rule.results, op->getResults())) {
    SmallVector<Factors> all;
    for (auto [dim, size] : llvm::zip(pattern.dims, shapeOf(result))) {
      Factors factors = objective::factorsOf(dim, letters);
      all.push_back(factors.empty() ? plainFactors(size, Along::Other) : factors);
    }
    set(result, std::move(all));
  }
}
