//===- Attention.h - attention and rotary embeddings in their plain form ----------------------===//
//
// Several operators, ONNX's and onnxruntime's, express one formula with different inputs. They are
// emitted the way exporters decompose them, so that raising sees one form.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_OPERATORS_ATTENTION_H
#define PARTITA_LIB_IMPORT_OPERATORS_ATTENTION_H

#include "lib/Import/Operators/Math.h"

namespace partita::importer {

struct AttentionParts {
  mlir::Value q, k, v; // [b, h, s, d], [b, g, t, d], [b, g, t, e]; g divides h
  mlir::Value bias;    // added to the scores, broadcast to [b, h, s, t]; or null
  mlir::Value keep;    // bool, broadcast likewise: scores that count; or null
  double filtered = -std::numeric_limits<double>::infinity(); // what the others become
  double scale = 1, softcap = 0;
  bool zeroHidden = false; // a query none of whose scores count gets zeros; else NaN
  mlir::Type softmaxType;  // null: that of q
};

/// The scores after each step, for operators that yield them.
struct AttentionScores {
  mlir::Value matmul, capped, biased, weights;
};

/// softmax(scale q k^T + bias) v, [b, h, s, e]. The shapes have been checked.
mlir::Value attend(Node &node, const AttentionParts &parts, AttentionScores *scores = nullptr);

/// Errors unless q, k, v (of four dimensions, heads second) fit one another.
mlir::LogicalResult checkAttention(Node &node, const AttentionParts &parts);
/// Errors unless `tensor`, called `what`, broadcasts to `shape` and has at most its dimensions.
mlir::LogicalResult checkBroadcast(Node &node, Tensor *tensor, llvm::ArrayRef<int64_t> shape,
                                   const char *what);

/// [b, s, h d] -> [b, h, s, d], and back.
mlir::Value splitHeads(Node &node, mlir::Value x, int64_t heads);
mlir::Value joinHeads(Node &node, mlir::Value x);
/// Keys that a query may see: [s, t], column <= row + past.
mlir::Value causalMask(Node &node, int64_t queries, int64_t keys, int64_t past);
/// And-ed with `other` where that is not null.
mlir::Value alsoKeep(Node &node, mlir::Value keep, mlir::Value other);

/// Rotates the first 2 w of the last dimension of x [..., d] by angles whose cosines and sines
/// [..., w] broadcast to it: halves against each other, or neighbours when `interleaved`.
mlir::Value rotate(Node &node, mlir::Value x, mlir::Value cos, mlir::Value sin, bool interleaved);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_OPERATORS_ATTENTION_H
