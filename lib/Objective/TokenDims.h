//===- TokenDims.h - which dimensions of a value run over samples and tokens --------*- C++ -*-===//
//
// Follows the dimensions of token ids [samples, tokens] through the ops' rules. A dimension may be a product: after a
// reshape to [samples * tokens, width], the first one runs over samples and, within them, tokens.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_LIB_OBJECTIVE_TOKENDIMS_H
#define PARTITA_LIB_OBJECTIVE_TOKENDIMS_H

#include "dialects/Par/Placement.h"
#include "dialects/Tx/Tx.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::objective {

enum class Along : uint8_t { Other, Samples, Tokens };

/// A factor of a dimension's size.
struct Factor {
  int64_t size;
  Along along;
  bool operator==(const Factor &other) const { return size == other.size && along == other.along; }
};
/// A dimension's factors, outermost first; none of size one.
using Factors = llvm::SmallVector<Factor, 2>;

inline bool runsAlongTokens(llvm::ArrayRef<Factor> factors) {
  return llvm::any_of(factors, [](const Factor &each) { return each.along == Along::Tokens; });
}

class TokenDims {
public:
  /// `ids`: the argument of tokens; others that are `known`, such as positions, are not data.
  TokenDims(mlir::func::FuncOp function, mlir::BlockArgument ids,
            llvm::function_ref<bool(mlir::BlockArgument)> isKnown);

  /// Does the value depend on data?
  bool isData(mlir::Value value) const { return dims.contains(value); }
  /// The factors of each dimension of a value that depends on data.
  llvm::ArrayRef<Factors> of(mlir::Value value) const { return dims.find(value)->second; }

  /// Finds the factors of an op's letters by its operands that depend on data, of which it must have one. Returns what
  /// is wrong if the op computes a token's result from other tokens, or "".
  std::string readLetters(mlir::Operation *op, const ShardRule *&rule,
                          llvm::SmallVectorImpl<Factors> &letters) const;
  /// Notes the op's results.
  void setResults(mlir::Operation *op, const ShardRule &rule, llvm::ArrayRef<Factors> letters);
  void set(mlir::Value value, llvm::SmallVector<Factors> factors) {
    dims[value] = std::move(factors);
  }

private:
  llvm::DenseMap<mlir::Value, llvm::SmallVector<Factors>> dims;
};

/// The factors of a dimension of a rule.
Factors factorsOf(const RuleDim &dim, llvm::ArrayRef<Factors> letters);

} // namespace partita::objective

#endif // PARTITA_LIB_OBJECTIVE_TOKENDIMS_H
