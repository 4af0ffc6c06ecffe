//===- Cuts.h - the layers of each position -----------------------------------------*- C++ -*-===//

#ifndef PARTITA_LIB_STAGES_CUTS_H
#define PARTITA_LIB_STAGES_CUTS_H

#include "dialects/Pipe/Positions.h"
#include "mlir/Support/LLVM.h"
#include "partita/Analysis/Flops.h"
#include "partita/Stages/Spans.h"
#include <string>

namespace partita {

/// Assigns contiguous layers to each position (dialects/Pipe/Positions.h).
class Cuts {
public:
  /// `assign` is an option of pipe-place; a program that does not train has no schedule. Work before the first layer or after the last one counts
  /// with that layer. On failure, sets `problem`.
  static mlir::FailureOr<Cuts> choose(llvm::StringRef assign, const pipe::Positions &positions,
                                      llvm::ArrayRef<LayerWork> work,
                                      const stages::RangeCosts &costs,
                                      const std::optional<stages::Schedule> &schedule,
                                      std::string &problem);

  llvm::ArrayRef<int64_t> firstLayers() const { return firsts; }
  int64_t positions() const { return static_cast<int64_t>(firsts.size()); }
  /// Returns the position of a place as train.layer numbers it, including before the first and
  /// after the last layer.
  int64_t positionOf(int64_t place) const;

private:
  explicit Cuts(llvm::SmallVector<int64_t> firsts) : firsts(std::move(firsts)) {}
  llvm::SmallVector<int64_t> firsts;
};

} // namespace partita

#endif // PARTITA_LIB_STAGES_CUTS_H
