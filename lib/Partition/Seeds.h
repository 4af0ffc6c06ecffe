//===- Seeds.h - who asked for which split ------------------------------------------*- C++ -*-===//
//
// A pass that seeds notes for every parameter that its seeds split, directly or through the rules'
// letters, who asked for it (#par.seed). Materialization puts that into the causes of what it
// inserts, and forgets it.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_LIB_PARTITION_SEEDS_H
#define PARTITA_LIB_PARTITION_SEEDS_H

#include "lib/Partition/Propagation.h"

namespace partita {

/// On a parameter, `{tp = #par.seed<...>}`: who split it.
inline constexpr llvm::StringLiteral kSeeds = "par.seeds";

/// On a move between shards and full values, a unit: it is there for what a pipeline stage sends.
inline constexpr llvm::StringLiteral kMoved = "par.moved";

class SeedLog {
public:
  /// Notes the parameters that an attempt which holds has split: `kind` and `words` are
  /// #par.seed's. What another seed split before remains that one's.
  void add(const Attempt &attempt, mlir::Value parameter, mlir::StringAttr axis,
           llvm::StringRef kind, llvm::StringRef words);
  /// Writes them on the parameters, next to what others noted there.
  void write(mlir::ModuleOp module, const Propagation &propagation) const;
  void clear() { seeds.clear(), ofParameter.clear(); }

private:
  struct Seed {
    mlir::StringAttr axis;
    std::string kind, words;
    llvm::SetVector<mlir::Value> reads;
  };
  llvm::SmallVector<Seed> seeds;
  /// Of a parameter's symbol and an axis, the seed's number.
  llvm::DenseMap<std::pair<mlir::StringAttr, mlir::StringAttr>, unsigned> ofParameter;
};

/// Who split a parameter over an axis; null where nobody said.
par::SeedAttr seedOf(mlir::Operation *parameter, mlir::StringAttr axis);

} // namespace partita

#endif // PARTITA_LIB_PARTITION_SEEDS_H
