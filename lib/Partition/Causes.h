//===- Causes.h - what each conjugate and move is there for -------------------------*- C++ -*-===//
//
// Materialization tells op by op what it places; from that follow, per value and axis, the seed of
// a split and the op that left a sum open. What it inserts gets #par.cause in its `par.causes`.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_LIB_PARTITION_CAUSES_H
#define PARTITA_LIB_PARTITION_CAUSES_H

#include "dialects/Par/Placement.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Analysis/Layers.h"

namespace partita {

/// The location, in the layer of another one where it has none: that of a constant, which upstream's
/// folders make without, or of a return.
mlir::Location inLayerOf(mlir::Location loc, mlir::Location other);

class Causes {
public:
  /// Of a function in which nothing is inserted yet.
  explicit Causes(mlir::func::FuncOp function) : function(function), layers(function) {}

  /// An argument or a read, whose type says by now what splits it.
  void source(mlir::Value value);
  /// A value that is another one, in or behind a region.
  void same(mlir::Value value, mlir::Value as);
  /// A gather or narrow: what splits the shard, the sequence's seed asked for.
  void moved(par::ReshardInterface move);
  /// An op whose types are by its rule now.
  void placed(mlir::Operation *op, const ShardRule &rule);

  /// A conjugate was inserted: a sum's for what left `value` open ...
  void completes(mlir::Operation *inserted, mlir::Value value, mlir::StringAttr axis);
  /// ... and f because `user` goes on with work of each rank's own; reported for every such user.
  void enters(mlir::Operation *inserted, par::Role role, mlir::Operation *user,
              mlir::StringAttr axis);

  /// Writes the causes, once all ops are placed.
  void write();

private:
  using Key = std::pair<mlir::Operation *, mlir::StringAttr>;
  struct Split {
    std::string letter;
    par::SeedAttr seed;
  };
  struct Trail {
    par::SeedAttr seed;
    mlir::Operation *opener = nullptr; ///< of a sum
  };
  static bool isNewer(const Trail &a, const Trail &b);
  struct Pending {
    mlir::Operation *inserted;
    par::Role role;
    mlir::Operation *op; ///< the opener, or the user
    mlir::StringAttr axis;
  };
  par::SeedAttr seedFor(llvm::StringRef kind, llvm::StringRef words,
                        llvm::StringRef parameter = "");
  void note(mlir::Operation *inserted, par::CauseAttr cause);
  void noteWithoutLetter(const Pending &each);
  void addOthers();
  int64_t layerOf(mlir::Operation *inserted, mlir::Operation *op);
  mlir::Operation *splitterFrom(mlir::Operation *user, mlir::StringAttr axis, bool seeded) const;

  mlir::func::FuncOp function;
  analysis::Layers layers;
  llvm::DenseMap<std::pair<mlir::Value, mlir::StringAttr>, Trail> trails;
  llvm::DenseMap<Key, Split> splits; ///< the letter of an op that an axis splits
  llvm::SmallVector<Pending> pending;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<par::CauseAttr>> noted;
};

} // namespace partita

#endif // PARTITA_LIB_PARTITION_CAUSES_H
