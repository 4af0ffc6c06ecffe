//===- Propagation.h - splits follow the letters of rules ---------------------------*- C++ -*-===//
//
// Every value has, per dimension, the axes that split it. An op unites its dimensions with the same
// letter: a split of one is a split of all. All reads of a parameter, in any function, are one
// value.
//
// A split stops at a letter that cannot be split ('^') or only as a last resort ('^!'), at an op
// where the axis already splits another letter, and at a size that does not divide, unless all ops
// that see it keep the padding of shards zero (par::unevenProblem). Splits of the batch may stop:
// materialization then reports what is missing. A split that is only tried (`attempt`) is undone if
// it stops anywhere.
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

/// Why a split cannot continue.
struct Stop {
  mlir::Operation *op = nullptr;
  std::string why;
  /// If not 0: subdividing each block of the seed's dimension this many times may get further.
  int64_t blocks = 0;
  /// Alternatively, blocks that end here may get further: (place, size) in a dimension that
  /// corresponds to the seed's in other units.
  llvm::SmallVector<std::pair<int64_t, int64_t>, 2> cuts;
  /// The op has a form that could be split ('^!').
  bool isLastResort = false;
};

/// Whether an attempt may go through letters that only other forms of ops can split, at a price
/// ('^!').
enum class LastResort { No, Yes };

/// The outcome of an attempt.
struct Attempt {
  /// The first obstacle other than a size; none if the split holds.
  std::optional<Stop> stop;
  /// The first obstacle of the first in the series of attempts that this one ends
  /// (attemptInBlocks).
  std::optional<Stop> first;
  /// It would split a parameter that must stay unsplit. This stops it, unless a size is an
  /// obstacle, too: another form of an op may then avoid both.
  std::optional<Stop> kept;
  /// A dimension of this size in `op` does not divide; 0 if all divide.
  int64_t indivisible = 0;
  mlir::Operation *indivisibleAt = nullptr;
  /// A dimension of this size is split into shards of which the last is shorter; 0 if there is
  /// none.
  int64_t uneven = 0;
  /// The ops whose letters it splits.
  llvm::SetVector<mlir::Operation *> ops;
  /// Whether the split is worth its collectives, in the caller's judgement.
  bool pays = false;

  bool holds() const { return !stop && indivisible == 0 && pays; }
};

class Propagation {
public:
  Propagation(mlir::ModuleOp module, par::MeshAttr mesh) : module(module), mesh(mesh) {}

  /// Reads the rules of all ops and the splits of arguments and parameters (kArgumentSplit), and
  /// propagates them. Fails after an error if an op's rule is wrong.
  mlir::LogicalResult run();

  /// Splits a dimension of a value over `axis`, within each of `blocks` blocks of it, and
  /// everything that follows from it. Undoes the split unless it holds.
  Attempt attempt(mlir::Value value, unsigned dim, mlir::StringAttr axis, par::Blocks blocks,
                  llvm::function_ref<bool(const Attempt &)> pays,
                  LastResort resort = LastResort::No);

  /// Tries the full dimension first; if this stops, as few blocks as will hold.
  Attempt attemptInBlocks(mlir::Value value, unsigned dim, mlir::StringAttr axis,
                          llvm::function_ref<bool(const Attempt &)> pays,
                          LastResort resort = LastResort::No);

  /// Returns the splits of a value so far.
  par::Layout layoutOf(mlir::Value value) const;

  bool hasRuleOf(mlir::Operation *op) const { return rules.contains(op); }
  /// Returns the rule of an op that has one, or the sizes of its letters.
  const ShardRule &ruleOf(mlir::Operation *op) const { return rules.find(op)->second.rule; }
  llvm::ArrayRef<int64_t> sizesOf(mlir::Operation *op) const {
    return rules.find(op)->second.sizes;
  }

  /// Splits a dimension of a value, and everything that follows from it, in the next `run`.
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
  /// Visits ops until nothing changes, or an attempt stops.
  void settle();
  void visit(mlir::Operation *op);
  void visitRule(mlir::Operation *op);
  void unite(const FlowEdge &edge);
  void uniteMoved(mlir::Operation *move, mlir::StringAttr axis);
  void split(mlir::Operation *by, mlir::Value value, unsigned dim, par::AxisSplit axis);
  void touch(mlir::Value value);
  void enqueue(mlir::Operation *op);
  /// Looks for an op that cannot handle the attempt's uneven shards.
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
  llvm::DenseMap<mlir::Value, mlir::StringAttr> keptFull; ///< first read -> the request
  std::deque<mlir::Operation *> pending;
  llvm::DenseSet<mlir::Operation *> isPending;
  /// During an attempt: its outcome so far, and the splits that values had before.
  Attempt *trial = nullptr;
  mlir::StringAttr trialAxis;
  LastResort lastResort = LastResort::No;
  llvm::SmallVector<std::pair<mlir::Value, llvm::SmallVector<par::DimSplit>>> before;
};

} // namespace partita

#endif // PARTITA_LIB_PARTITION_PROPAGATION_H
