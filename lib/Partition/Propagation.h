//===- Propagation.h - splits follow the letters of rules ---------------------------*- C++ -*-===//
//
// Every value has, per dimension, the axes that split it. An op unites its dimensions that carry
// one letter: what splits one of them splits all. All reads of a parameter, in whichever function,
// are one value.
//
// A letter that cannot be split ('^'), or as a last resort alone ('^!'), an axis that already
// splits another letter of the op, and a size that does not divide stop a split, unless all ops
// that see it keep a shard's padding zero (par::unevenProblem). Those of the batch may stop:
// materialization then says what is missing. A split that is only tried (`attempt`) is taken back
// when it stops anywhere.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_LIB_PARTITION_PROPAGATION_H
#define PARTITA_LIB_PARTITION_PROPAGATION_H

#include "dialects/Par/Placement.h"
#include "lib/Partition/Flow.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include <deque>

namespace partita {

/// Why a split cannot go on.
struct Stop {
  mlir::Operation *op = nullptr;
  std::string why;
  /// Not 0: splitting each of so many times more blocks of the seed's dimension may go further.
  int64_t blocks = 0;
  /// Or blocks that end at these places do, of a dimension of this size that is the seed's in other
  /// units.
  llvm::SmallVector<std::pair<int64_t, int64_t>, 2> cuts;
  /// The op has a form that could be split ('^!').
  bool isLastResort = false;
};

/// May a split that is tried go through letters that other ops in the op's place can split, at a
/// price ('^!')?
enum class LastResort { No, Yes };

/// What became of a split that was tried.
struct Attempt {
  /// The first thing in its way other than a size; nothing when the split holds.
  std::optional<Stop> stop;
  /// The same of the first of the attempts that this is the last of (attemptInBlocks).
  std::optional<Stop> first;
  /// It would split a parameter that is to stay unsplit: a stop, unless a size is in the way too,
  /// and another form of an op may lead around both.
  std::optional<Stop> kept;
  /// A dimension of this size in `op` does not divide; 0 where all divide.
  int64_t indivisible = 0;
  mlir::Operation *indivisibleAt = nullptr;
  /// A dimension of this size is split into shards the last of which is shorter; 0 where none is.
  int64_t uneven = 0;
  /// The ops one of whose letters it splits.
  llvm::SetVector<mlir::Operation *> ops;
  /// Is it worth its collectives? (The caller's judgement.)
  bool pays = false;

  bool holds() const { return !stop && indivisible == 0 && pays; }
};

class Propagation {
public:
  Propagation(mlir::ModuleOp module, par::MeshAttr mesh) : module(module), mesh(mesh) {}

  /// Reads the rules of all ops and the splits that arguments and parameters have (kArgumentSplit),
  /// and propagates them. Failure, after an error, where an op's rule is wrong.
  mlir::LogicalResult run();

  /// Splits `blocks` blocks of a dimension of a value over `axis`, with all that follows; takes it
  /// back unless it holds.
  Attempt attempt(mlir::Value value, unsigned dim, mlir::StringAttr axis, par::Blocks blocks,
                  llvm::function_ref<bool(const Attempt &)> pays,
                  LastResort resort = LastResort::No);

  /// The same of all of the dimension, or, where that is in the way, of as few blocks as will hold.
  Attempt attemptInBlocks(mlir::Value value, unsigned dim, mlir::StringAttr axis,
                          llvm::function_ref<bool(const Attempt &)> pays,
                          LastResort resort = LastResort::No);

  /// The splits of a value so far; empty lists where it has none.
  par::Layout layoutOf(mlir::Value value) const;

  /// The rule of an op that has one, and the sizes of its letters.
  const ShardRule &ruleOf(mlir::Operation *op) const { return rules.find(op)->second.rule; }
  llvm::ArrayRef<int64_t> sizesOf(mlir::Operation *op) const {
    return rules.find(op)->second.sizes;
  }

  /// Splits a dimension of a value, with all that follows, in the next `run`.
  void seed(mlir::Value value, unsigned dim, par::AxisSplit split) {
    seeds.push_back({value, dim, split});
  }

  /// Writes the splits of all results on the ops (kResultSplits), for materialization.
  void annotate();

private:
  struct OpRule {
    ShardRule rule;
    llvm::SmallVector<int64_t> sizes; // of the letters
  };

  struct Seed {
    mlir::Value value;
    unsigned dim;
    par::AxisSplit split;
  };

  mlir::LogicalResult collect();
  void seedMove(mlir::Operation *op);
  bool isForbidden(const RuleLetter &letter, mlir::StringAttr axis) const;
  mlir::Value canonical(mlir::Value value) const;
  /// Visits ops until nothing changes, or an attempt is stopped.
  void settle();
  void visit(mlir::Operation *op);
  void visitRule(mlir::Operation *op);
  void unite(const FlowEdge &edge);
  void uniteMoved(par::ReshardInterface move);
  void split(mlir::Operation *by, mlir::Value value, unsigned dim, par::AxisSplit axis);
  void touch(mlir::Value value);
  void enqueue(mlir::Operation *op);
  /// Looks for an op that cannot have what is tried split unevenly.
  void checkUneven(Attempt &tried) const;
  void stopAt(mlir::Operation *op, const llvm::Twine &why, int64_t blocks = 0,
              llvm::ArrayRef<std::pair<int64_t, int64_t>> cuts = {});

  mlir::ModuleOp module;
  par::MeshAttr mesh;
  llvm::MapVector<mlir::Operation *, OpRule> rules;
  llvm::DenseMap<mlir::Value, mlir::Value> firstRead;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value, 1>> otherReads;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<par::DimSplit>> splits;
  llvm::SmallVector<Seed> seeds;
  llvm::DenseMap<mlir::Value, mlir::StringAttr> keptWhole; ///< first reads, and who said so
  std::deque<mlir::Operation *> pending;
  llvm::DenseSet<mlir::Operation *> isPending;
  /// While something is tried: what it has met, and what values had before it.
  Attempt *trial = nullptr;
  mlir::StringAttr trialAxis;
  LastResort lastResort = LastResort::No;
  llvm::SmallVector<std::pair<mlir::Value, llvm::SmallVector<par::DimSplit>>> before;
};

} // namespace partita

#endif // PARTITA_LIB_PARTITION_PROPAGATION_H
