//===- Seeds.h - who requested which split ------------------------------------------*- C++ -*-===//
//
// A pass that seeds splits notes their origin (#par.seed) for every parameter that they split,
// directly or through the rules' letters. Materialization copies it into the causes of the ops that
// it inserts, and removes it.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_LIB_PARTITION_SEEDS_H
#define PARTITA_LIB_PARTITION_SEEDS_H

#include "lib/Partition/Propagation.h"

namespace partita {

/// On a parameter: who split it, `{tp = #par.seed<...>}`.
inline constexpr llvm::StringLiteral kSeeds = "par.seeds";

/// On a move between shards and full values (a unit): it is for a message of a pipeline stage.
inline constexpr llvm::StringLiteral kMoved = "par.moved";

class SeedLog {
public:
  /// Notes the parameters that a successful attempt has split: `kind` and `words` are those of
  /// #par.seed. Splits of earlier seeds keep their origin.
  void add(const Attempt &attempt, mlir::Value parameter, mlir::StringAttr axis,
           llvm::StringRef kind, llvm::StringRef words);
  /// Writes them on the parameters, next to earlier notes.
  void write(mlir::ModuleOp module, const Propagation &propagation) const;
  void clear() { seeds.clear(), ofParameter.clear(); }

private:
  struct Seed {
    mlir::StringAttr axis;
    std::string kind, words;
    llvm::SetVector<mlir::Value> reads;
  };
  llvm::SmallVector<Seed> seeds;
  /// The seed's number, by parameter symbol and axis.
  llvm::DenseMap<std::pair<mlir::StringAttr, mlir::StringAttr>, unsigned> ofParameter;
};

/// Returns who split a parameter over an axis; null if unknown.
par::SeedAttr seedOf(mlir::Operation *parameter, mlir::StringAttr axis);

} // namespace partita

#endif // PARTITA_LIB_PARTITION_SEEDS_H
