//===- Causes.h - why each conjugate and move is needed -----------------------------*- C++ -*-===//
//
// Materialization reports each op that it places. Causes derives, per value and axis, the seed of a
// split and the op that left a sum open. Inserted ops get #par.cause in their `par.causes`.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_LIB_PARTITION_CAUSES_H
#define PARTITA_LIB_PARTITION_CAUSES_H

#include "dialects/Par/Placement.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Analysis/Layers.h"

namespace partita {

/// Returns `loc`, with the layer of `other` if it has none: constants, which upstream's folders
/// make without a layer, and returns.
mlir::Location inLayerOf(mlir::Location loc, mlir::Location other);

class Causes {
public:
  /// Expects a function into which nothing has been inserted yet.
  explicit Causes(mlir::func::FuncOp function) : function(function), layers(function) {}

  /// Reports an argument or a read, whose type already has its splits.
  void source(mlir::Value value);
  /// Reports a value that equals another one, inside or after a region.
  void same(mlir::Value value, mlir::Value as);
  /// Reports a gather or narrow. Unless it has another origin, the split of the shard comes from
  /// the sequence's seed.
  void moved(par::ReshardInterface move);
  /// Reports an op whose types follow its rule now.
  void placed(mlir::Operation *op, const ShardRule &rule);

  /// Reports a conjugate that completes what left `value` open ...
  void completes(mlir::Operation *inserted, mlir::Value value, mlir::StringAttr axis);
  /// ... and an f, needed because `user` continues with different work on each rank; call it for
  /// every such user.
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
  llvm::DenseMap<Key, Split> splits; ///< the letter that the axis splits
  llvm::SmallVector<Pending> pending;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<par::CauseAttr>> noted;
};

} // namespace partita

#endif // PARTITA_LIB_PARTITION_CAUSES_H
