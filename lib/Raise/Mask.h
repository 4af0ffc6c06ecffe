//===- Mask.h - what stands between the scores and the softmax, by value ------------*- C++ -*-===//

#ifndef PARTITA_LIB_RAISE_MASK_H
#define PARTITA_LIB_RAISE_MASK_H

#include "dialects/Tx/Tx.h"
#include <string>

namespace partita::raise {

/// softmax's argument as a function of the scores: scale * score where a key is visible, so low
/// that the exponential is zero where it is hidden.
struct Mask {
  bool causal = false; // query i sees keys up to i + keys - queries; else all
  int64_t window = 0;  // if not 0: of these the last `window`
  double scale = 1;
  std::string problem; // why it is neither; empty if all is well
};

/// Evaluates `masked` (of queries x keys in its last two dimensions) at every position for two
/// values of `scores`, which it is computed from.
Mask readMask(mlir::Value masked, mlir::Value scores);

} // namespace partita::raise

#endif // PARTITA_LIB_RAISE_MASK_H
