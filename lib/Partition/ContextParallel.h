//===- ContextParallel.h - rings and exchanges of heads -----------------------------------*- C++ -*-===//
//
// What partition-seed-context asks of one attention and does to it: whether its heads can be dealt out to the ranks that
// share its sequence (HeadExchange.cpp), where it takes its heads of a bias (BiasHeads.cpp), and what a ring or an exchange
// sends (ContextBytes.cpp).
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_LIB_PARTITION_CONTEXTPARALLEL_H
#define PARTITA_LIB_PARTITION_CONTEXTPARALLEL_H

#include "dialects/Tx/Tx.h"
#include "lib/Partition/Flow.h"

namespace partita {

class Propagation;

/// The mesh axes that split sequences.
struct ContextAxes {
  mlir::StringAttr axis; ///< of the ring, or of the exchange if there is no other axis
  int64_t ranks = 1;
  mlir::StringAttr headsAxis; ///< null, or of the exchange within a ring
  int64_t headParts = 1;      ///< its ranks

  /// The axis over which heads are dealt out, if any are.
  mlir::StringAttr dealingAxis() const { return headsAxis ? headsAxis : axis; }
  int64_t dealingRanks() const { return headsAxis ? headParts : ranks; }
};

/// Do all query heads share one head of keys and values (multi-query attention)?
bool hasOneKeyHead(tx::AttentionOp op);

/// Deals out the heads of one attention after another.
class HeadExchange {
public:
  explicit HeadExchange(const ContextAxes &axes) : axes(axes) {}

  /// Why its heads cannot be dealt out, after "an all-to-all "; empty if they can. `others`: ranks of tp that split them.
  std::string problem(tx::AttentionOp op, int64_t others) const;
  /// What to do about such a problem, after it.
  std::string advice(tx::AttentionOp op, int64_t others) const;
  /// Puts an exchange before queries, keys and values, and one behind the result: each rank trades its part of the sequence,
  /// for all heads, for the whole sequence, for its heads (within a ring, of what a rank of the ring has of it; USP: Fang &
  /// Zhao, arXiv 2405.07719). A rank takes its heads of a bias. A single key head is needed by all ranks, which gather it.
  /// `runs`: chunks of a sequence on a rank of the ring. Returns the number of exchanges.
  int64_t insert(tx::AttentionOp op, int64_t others, int64_t runs) const;
  /// Ranks that exchange heads within a ring all need the same rows of whatever has no heads to exchange: a single key head,
  /// a bias, first keys. Adds those operands.
  static void addCoarse(tx::AttentionOp op, llvm::DenseSet<mlir::OpOperand *> &coarse);

private:
  const ContextAxes &axes;
};

/// Returns the operands of an op, by number, and their dimensions that have the heads which dimension `dim` of its only
/// result has; empty if shards of them, in so many blocks, do not make one of it, or if none has them.
llvm::SmallVector<std::pair<unsigned, unsigned>> operandsWithHeads(const Propagation &propagation,
                                                                   mlir::Operation *op,
                                                                   unsigned dim, int64_t blocks);
/// Moves each `par.narrow` over this axis of the heads of biases before the ops that make the biases, as far as these can work
/// on a rank's heads and nobody needs the others. `propagation`: of the function, with it.
void takeHeadsEarly(mlir::func::FuncOp function, const Propagation &propagation,
                    mlir::StringAttr axis);

/// Elements of the keys' type that all ranks together send for one attention, forward and backward: the bytes of the
/// program's census, divided by the batch and the size of an element.
class ContextBytes {
public:
  explicit ContextBytes(const ContextAxes &axes) : axes(axes) {}

  /// Of all shifts of keys, values and their gradients.
  double ofRing(tx::AttentionOp op) const;
  /// `others`: ranks of tp that split its heads. `independent`: of its function; `propagation`: with its rules.
  double ofExchange(tx::AttentionOp op, int64_t others, const DataIndependence &independent,
                    const Propagation &propagation) const;

private:
  const ContextAxes &axes;
};

} // namespace partita

#endif // PARTITA_LIB_PARTITION_CONTEXTPARALLEL_H
