//===- Layers.h - finds a model's layers in the structure of its graph --------------*- C++ -*-===//
//
// A layer is what repeats along the chain through which all data pass, whatever the nodes' names:
//
//   1. The trunk. An op b post-dominates an op a if every path from a to the block's end passes
//      through b. The nearest such op is a's next stop; the stops from a model's first op to its
//      last are the trunk: in a Transformer the residual sums (and norms directly after them).
//      Where several chains meet, the trunk continues with an operand of the op at which they meet:
//      of two, with the one that feeds the other; if neither does (a layer's branches, added one
//      after the other), with what feeds all of them, else with the longest chain. Each other chain
//      is a trunk of its own (an encoder's).
//   2. Segments. An op belongs to a stop of the trunk if all its users do, so a segment is what
//      lies between one stop and the next. What several segments use (masks, tables of angles, tied
//      weights) belongs to none.
//   3. Hashes. Two segments are equal if their ops are: by name, rule and types, with equal ops for
//      operands; an operand from outside counts by its type and by whether it is the previous stop.
//      What depends on no data (a weight, a transposed weight) is outside, so a layer that shares a
//      weight equals one that does not, wherever weights are read. Other attributes do not count: a
//      dropout's number, a window of attention.
//   4. Layers. The longest range of the trunk that is one sequence of segments, repeated at least
//      twice, and that reads a parameter with two dimensions or more: of several such sequences the
//      shortest, of several such ranges the last. Each repetition is a layer.
//   5. Skips. Where an op reads the stream of an earlier residual sum beside what two or more such
//      sums make of it, its edge is a skip connection over layers. So is the edge of a chain of ops
//      that only the skip connection has (its norm, its projection). Such edges hide stops, so the
//      layers are also sought without them; this counts if more ops are then in layers. The
//      repetition may then be interrupted where a skip ends: what is between two layers (the sum
//      with the skipped value, its gate, a chain of ops before or after it) belongs to the later
//      one. The ops that only a skip connection has may read others: a running sum of all blocks'
//      outputs is one. In a U without a middle block the innermost skip is over no block. It is
//      found by what it has in common with the others: its chain, or the segment in which it ends.
//
// Conjugates and moves of the par and pipe dialects are ignored: the partitioned forward program
// has the same layers as the unpartitioned one.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_ANALYSIS_LAYERS_H
#define PARTITA_ANALYSIS_LAYERS_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

namespace partita::analysis {

class Layers {
public:
  /// Finds the layers in all blocks within `root`, a function's forward program; numbers them in
  /// the order of the blocks.
  explicit Layers(mlir::Operation *root);

  int64_t count() const { return layers; }
  /// Returns the number of the op's layer, or kBefore or kAfter. An op is after the layers if it
  /// depends on a layer and no layer uses it.
  int64_t layerOf(mlir::Operation *op) const;

  /// A skip connection: `to` reads what `from` makes.
  struct Skip {
    mlir::Operation *from, *to;
  };
  /// Returns the skip connections over what is in no layers, or within one: none of them is between
  /// two layers.
  llvm::ArrayRef<Skip> uncutSkips() const { return skips; }

  static constexpr int64_t kBefore = -1, kAfter = -2;

private:
  llvm::DenseMap<mlir::Operation *, int64_t> numbers;
  llvm::SmallVector<Skip> skips;
  int64_t layers = 0;
};

} // namespace partita::analysis

#endif // PARTITA_ANALYSIS_LAYERS_H
