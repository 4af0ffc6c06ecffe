//===- Schedule.h - in which order a stage runs its micro-batches -------------------*- C++ -*-===//
//
// A schedule is a table: for each stage the slots that it runs, one after the other. Whoever makes
// one (the generators by name, or a user's file) makes nothing else; what follows from it - whether it
// can run at all, when the stages communicate what, how many micro-batches are in flight, how long
// stages wait - is worked out here, for all alike.
//
// A rank of a stage has one or several chunks of layers, in the order that dialects/Pipe/Positions.h has.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_STAGES_SCHEDULE_H
#define PARTITA_STAGES_SCHEDULE_H

#include "dialects/Pipe/Positions.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <vector>

namespace partita::stages {

/// One micro-batch's pass through a chunk. Where a schedule has slots for weights, Backward is the
/// cotangent of the chunk's input alone, and Weights what the parameters' gradients still need.
struct Slot {
  enum Kind { Forward, Backward, Weights } kind;
  int chunk = 0, microBatch = 0;
  bool operator==(const Slot &other) const {
    return kind == other.kind && chunk == other.chunk && microBatch == other.microBatch;
  }
};

struct Schedule {
  int stages = 1, microBatches = 1, chunks = 1; ///< chunks: of each stage
  bool isWave = false;                          ///< every other row of chunks runs backward
  bool splitsBackward = false;                  ///< it has slots for weights
  std::vector<std::vector<Slot>> slots;         ///< of each stage

  pipe::Positions layout() const { return {stages, chunks, isWave}; }
  int positions() const { return stages * chunks; }
  int positionOf(int stage, int chunk) const { return static_cast<int>(layout().at(stage, chunk)); }
  /// Of a position: its stage and chunk.
  std::pair<int, int> placeOf(int position) const;
};

/// By name: gpipe (Huang et al., arXiv 1811.06965), 1f1b (Narayanan et al., arXiv 1806.03377, 2006.09503),
/// interleaved (Narayanan et al., arXiv 2104.04473), zb-h1, zb-h2 (Qi et al., arXiv 2401.10241), zb-v
/// (Qi et al., arXiv 2405.15362). `chunks`: of interleaved, of each stage; zb-v has two, the others one. Nothing, and
/// `problem` set, where the schedule needs other numbers.
std::optional<Schedule> makeSchedule(llvm::StringRef name, int stages, int microBatches, int chunks,
                                     std::string &problem);

/// Of a file: `{"chunks": 1, "wave": false, "slots": [["F0", "F1", "B0", "B1"], ...]}`, a list for each
/// stage; F, B and W with the micro-batch, and behind a dot the chunk if it is not 0 ("F3.1"). How many
/// micro-batches follows from the slots. Does not check whether the schedule can run.
std::optional<Schedule> parseSchedule(llvm::StringRef json, std::string &problem);

/// A schedule of `isFile` is read from there.
bool isFile(llvm::StringRef schedule);
std::optional<Schedule> readSchedule(const std::string &path, std::string &problem);

/// How the positions of a schedule, by name or a file's, map to stages; `chunks` of each stage, 0 for as many as it has by
/// itself: two of interleaved and zb-v, a file's own, of the others one. Nothing, and `problem` set, where it has not so many.
std::optional<pipe::Positions> layoutOf(const std::string &schedule, int64_t stages, int64_t chunks,
                                        std::string &problem);

/// A schedule, by name or a file's, for a program of this layout. Nothing, and `problem` set, where there is none. Does not
/// check whether it can run.
std::optional<Schedule> findSchedule(const std::string &schedule, const pipe::Positions &layout,
                                     int microBatches, std::string &problem);

/// A slot as files and pictures have it: "F3", and of another chunk than the first "B0.1". parseSlot: nothing where the text is none.
std::string slotText(const Slot &slot);
std::optional<Slot> parseSlot(llvm::StringRef text);

/// Why the schedule cannot run, at the slot where it shows; empty if it can. Each pass of each
/// micro-batch stands once, and none waits for what comes behind it.
std::string findProblem(const Schedule &schedule);

/// What one stage does and communicates: a message is a chunk's output on its way to the next
/// position, or the cotangent on its way back.
struct Step {
  enum Kind { Run, Send, Receive } kind;
  Slot slot;     ///< that runs, or makes what is sent or received
  int peer = -1; ///< of Send and Receive: the other stage
};

/// Of a schedule that can run: for each stage its slots and messages in one order. All stages' orders
/// are parts of one order of everything, so they finish even if a send waits for its receive.
std::vector<std::vector<Step>> stepsOf(const Schedule &schedule);

/// Why the steps do not finish where a send waits for its receive, or do something else than the
/// schedule; empty if they do.
std::string findProblem(const Schedule &schedule, llvm::ArrayRef<std::vector<Step>> steps);

/// Why a schedule that can run does not finish as programs run it; empty if it does. A stage receives when a slot
/// begins, and before it runs a pass of a chunk again it awaits what that pass has sent the last time; a send is complete
/// once its receive has begun. Messages of a pass must be taken in the order in which they are sent.
std::string findStall(const Schedule &schedule);

/// Seconds, or any other unit, that a slot of a chunk takes.
struct SlotCosts {
  double forward = 1, backward = 1, weights = 1;
  double of(Slot::Kind kind) const {
    return kind == Slot::Forward ? forward : kind == Slot::Backward ? backward : weights;
  }
};

/// What follows from the slots of a schedule that can run.
struct ScheduleReport {
  double seconds = 0; ///< from the first slot's begin to the last one's end
  double bubble = 0;  ///< the most that a stage idles between its first and its last slot
  std::vector<int>
      inFlight; ///< of each stage: the most chunks of micro-batches whose values it keeps
  std::vector<double> work;                ///< of each stage: what its slots take in all
  std::vector<std::vector<double>> begins; ///< of each stage: when each slot begins
  /// What waiting adds to the slowest stage's work, as a part of that: at equal costs (p - 1) / m of 1F1B.
  double bubbleShare() const;
};
/// All stages and chunks alike; or of each stage each chunk's own. Messages take no time.
ScheduleReport report(const Schedule &schedule, const SlotCosts &costs);
ScheduleReport reportByStage(const Schedule &schedule,
                             llvm::ArrayRef<std::vector<SlotCosts>> costs);

} // namespace partita::stages

#endif // PARTITA_STAGES_SCHEDULE_H
