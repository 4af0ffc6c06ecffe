//===- Buckets.h - one collective for many values -----------------------------------*- C++ -*-===//

#ifndef PARTITA_LIB_OVERLAP_BUCKETS_H
#define PARTITA_LIB_OVERLAP_BUCKETS_H

#include "dialects/Interfaces/Interfaces.h"
#include "llvm/ADT/DenseMap.h"
#include <functional>
#include <map>

namespace partita::overlap {

/// Joins collectives, each of which has as many operands as results.
///
/// In each block, collectives of one kind over one axis join in the order in which their operands
/// are defined, until a bucket is full; sums of the forward pass join only within a layer. A
/// collective whose result is needed before a later operand of the bucket is defined closes the
/// bucket: a bucket goes after its last operand and before its first use.
///
/// Sums of sums (a norm's gradient over tp, then over dp) join from the inside out. A use by
/// another collective that joins does not close a bucket, since the outer collectives move after
/// it.
class Buckets {
public:
  using Predicate = std::function<bool(mlir::Operation *)>;
  struct Joined {
    int64_t count = 0; ///< of buckets
    /// Would other bytes make other buckets? Not if no two ops could share one.
    bool sizeCounts = false;
  };
  /// Joins them in every block of the module, or reports an error about `bytes`.
  static mlir::FailureOr<Joined> joinAll(mlir::Operation *module, Predicate joins, int64_t bytes);

  /// What members of a bucket share: kind, element type, all attributes but provenance and the
  /// reason (hence the axis, whether it runs only in its pass's last slot, and attributes that only
  /// a plugin knows), whether it is done once per step for parameters, and its place: the backward
  /// pass or, for a sum of the forward pass, a layer.
  using Key = std::tuple<mlir::Attribute, mlir::Type, mlir::Attribute, unsigned, mlir::Attribute>;
  static Key keyOf(mlir::Operation *op);

  /// Returns true for the collective of one chunk (par.join), which begins before the next chunk is
  /// computed, so that it shares no bucket.
  static bool isOfChunk(mlir::Operation *op);

private:
  /// `joins` selects ops. A bucket is closed at `bytes`; 0 means an eighth of the total, between
  /// 256 KiB and 25 MB.
  Buckets(Predicate joins, int64_t bytes) : joins(std::move(joins)), bytes(bytes) {}
  void run(mlir::Block *block);

  using Ops = llvm::SmallVector<mlir::Operation *>;
  struct Bucket {
    Ops members;
    int64_t bytes = 0;
  };

  mlir::Operation *firstUse(mlir::Block *block, mlir::Operation *op) const;
  unsigned heightOf(mlir::Operation *op) const;
  int64_t sizeFor(int64_t total) const;
  bool usedBefore(mlir::Block *block, const Bucket &bucket, mlir::Operation *next) const;
  void sortByReadiness(mlir::Block *block, Ops &ops) const;
  void run(mlir::Block *block, Ops &ops);
  static void join(const Bucket &bucket);

  Predicate joins;
  int64_t bytes;
  Joined made;
};

} // namespace partita::overlap

#endif // PARTITA_LIB_OVERLAP_BUCKETS_H
