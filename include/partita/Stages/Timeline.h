//===- Timeline.h - when each stage of a pipeline runs each slot --------------------*- C++ -*-===//

#ifndef PARTITA_STAGES_TIMELINE_H
#define PARTITA_STAGES_TIMELINE_H

#include "partita/Stages/Schedule.h"
#include "llvm/Support/JSON.h"

namespace partita::stages {

/// The schedule of a program's stages, from the manifest, simulated on a clock of op costs.
struct Timeline {
  Schedule schedule;
  std::vector<std::vector<SlotCosts>> costs; ///< per stage, each chunk's
  ScheduleReport report;
  /// The reductions that a pass starts in its last slot.
  struct Reduction {
    size_t slot = 0; ///< number in the stage
    int64_t bytes = 0;
    double beside = 0; ///< fraction of the pass's cost that comes after the first start
  };
  std::vector<std::vector<Reduction>> reductions; ///< per stage, in the order of slots

  double begin(int stage, size_t slot) const { return report.begins[stage][slot]; }
  double end(int stage, size_t slot) const;
  /// Returns the stage with the most work of its own.
  int slowest() const;

  /// Reads the manifest's entry "stages". Returns nothing if they have no schedule (a program for
  /// inference) or, with `problem` set, if the schedule cannot run.
  static std::optional<Timeline> of(const llvm::json::Array &stages, std::string &problem);

  /// {"time", "bubble_share", "stages": [{"stage", "work", "waits", "in_flight", "slots": [{"slot", "begin", "end"}],
  /// "reductions": [{"slot", "bytes", "beside"}]}]}
  llvm::json::Object toJson() const;
};

} // namespace partita::stages

#endif // PARTITA_STAGES_TIMELINE_H
