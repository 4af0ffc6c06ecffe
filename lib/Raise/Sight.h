//===- Sight.h - which keys the masks of an attention leave a query -----------------*- C++ -*-===//

#ifndef PARTITA_LIB_RAISE_SIGHT_H
#define PARTITA_LIB_RAISE_SIGHT_H

#include "partita/Raise/IndexEvaluator.h"

namespace partita::raise {

/// Elements of all heads and samples of a bias that a pass evaluates at most.
inline constexpr int64_t kMostMaskElements = int64_t(1) << 27;

/// What `causal`, `window` and the bias of an attention say of query i and key j.
class Sight {
public:
  explicit Sight(tx::AttentionOp op) : op(op), bias(op.getBias()) {}

  /// Do `causal` and `window` show key j to query i?
  bool isShown(int64_t i, int64_t j) const;
  /// What the bias adds to a query's scores, a number for each key; nothing if it depends on more than constants,
  /// or on an op that is not understood. There is a bias.
  std::optional<std::vector<double>> row(int64_t sample, int64_t head, int64_t i);
  /// What it adds to the score of key j; nothing as above.
  std::optional<double> element(int64_t sample, int64_t head, int64_t i, int64_t j);
  /// The samples and heads to look at, so that all that differ are seen.
  int64_t samples() { return varies(0) ? bias.getType().getDimSize(0) : 1; }
  int64_t heads() { return varies(1) ? bias.getType().getDimSize(1) : 1; }
  bool varies(int64_t dim) { return evaluator.variesAlong(bias, dim); }

  /// Assumes every element of the function's arguments that the bias depends on to be `number`, and parameters and results
  /// of ops that are not understood to add nothing. False if there are such results that are conditions or numbers of things.
  bool assumeInputs(double number);

private:
  /// The bias's index of query i, without the key: dimensions of size one have 0.
  llvm::SmallVector<int64_t> indexOf(int64_t sample, int64_t head, int64_t i);

  tx::AttentionOp op;
  mlir::TypedValue<mlir::RankedTensorType> bias;
  IndexEvaluator evaluator;
};

/// Is there an input with which a query sees a key behind it? False also where the bias is not understood.
bool seesLaterKeys(tx::AttentionOp op);

} // namespace partita::raise

#endif // PARTITA_LIB_RAISE_SIGHT_H
