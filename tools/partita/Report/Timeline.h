//===- Timeline.h - when each stage of a pipeline runs what -------------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_TIMELINE_H
#define PARTITA_TOOLS_TIMELINE_H

#include "partita/Stages/Schedule.h"
#include "llvm/Support/JSON.h"

namespace partita::tool {

/// The schedule of a program's stages, as the manifest has it, run on a clock of op costs.
struct Timeline {
  stages::Schedule schedule;
  std::vector<std::vector<stages::SlotCosts>> costs; ///< of each stage each chunk's
  stages::ScheduleReport report;
  /// What a pass begins to reduce in its last slot.
  struct Reduction {
    size_t slot = 0;   ///< of the stage
    int64_t bytes = 0;
    double beside = 0; ///< of the pass's cost, the part that comes behind the first start
  };
  std::vector<std::vector<Reduction>> reductions; ///< of each stage, in the order of the slots

  double begin(int stage, size_t slot) const { return report.begins[stage][slot]; }
  double end(int stage, size_t slot) const;
  /// The stage whose own work takes longest.
  int slowest() const;

  /// Of the manifest's entry "stages"; nothing where they have no schedule: a program for inference, or one whose
  /// entries are not such that it can run, with `problem` set.
  static std::optional<Timeline> of(const llvm::json::Array &stages, std::string &problem);

  /// {"time", "bubble_share", "stages": [{"stage", "work", "waits", "in_flight", "slots": [{"slot", "begin", "end"}],
  /// "reductions": [{"slot", "bytes", "beside"}]}]}
  llvm::json::Object toJson() const;
};

} // namespace partita::tool

#endif // PARTITA_TOOLS_TIMELINE_H
