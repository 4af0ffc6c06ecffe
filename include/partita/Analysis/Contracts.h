//===- Contracts.h - limits on what a program may communicate -----------------------*- C++ -*-===//
//
//     contract  := what operator number ["/" scope]
//     what      := ["bytes."] kind ["@" axis] ["." direction]; "bytes" alone is bytes.total
//     kind      := total | the name of a collective of programs (partita_rt/collectives.h)
//     direction := forward | backward
//     operator  := "<=" | "==" | ">=" | "<" | ">"
//     number    := digits; of bytes also 64K, 1.5G (powers of 1024; KB, GB too)
//     scope     := layer | step | warmup | compressed   (step if none is given)
//
// Per layer: in each layer, per micro-batch. Per step: in one call of train_step, all
// micro-batches. Where steps differ (phasesOf), a contract must hold in every phase; `warmup` is a step of the first one,
// `compressed` of the last.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_ANALYSIS_CONTRACTS_H
#define PARTITA_ANALYSIS_CONTRACTS_H

#include "partita/Analysis/Collectives.h"

namespace partita::analysis {

struct Contract {
  std::string text, axis, direction, relation; ///< empty axis or direction: any
  std::optional<CollectiveKind> kind;          ///< none: all
  enum Phase { Any, Warmup, Compressed };
  bool bytes = false, perLayer = false;
  Phase phase = Any;
  int64_t number = 0;

  /// Parses a contract. Returns what is wrong with it, or "".
  static std::string parse(llvm::StringRef text, Contract &contract);

  bool concerns(const Collective &collective) const;
  bool allows(int64_t value) const;
};

struct Breach {
  std::string message;
  std::vector<Collective> offenders; ///< each once per shape, in order
};

/// Returns what breaks the contract, if anything. `collectives` and `ranges` are those of one stage, as for Census::of.
std::optional<Breach> findBreach(const Contract &contract, llvm::ArrayRef<Collective> collectives,
                                 llvm::ArrayRef<LayerRange> ranges = {});

} // namespace partita::analysis

#endif // PARTITA_ANALYSIS_CONTRACTS_H
