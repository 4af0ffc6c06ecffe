//===- Schedule.h - the order in which stages run micro-batches ---------------------*- C++ -*-===//
//
// A schedule is a table: for each stage the slots that it runs, one after another. The named
// generators, or a user's file, only make this table. Everything that follows from it is computed
// here, for all of them: whether it can run, what stages communicate, how many micro-batches are in
// flight, and how long stages wait.
//
// A rank of a stage has one or several chunks of layers, in the order of dialects/Pipe/Positions.h.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_STAGES_SCHEDULE_H
#define PARTITA_STAGES_SCHEDULE_H

#include "dialects/Pipe/Positions.h"
#include "dialects/Train/PassKinds.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <array>
#include <optional>
#include <string>
#include <vector>

namespace partita::stages {

using train::PassKind;
/// If a schedule has slots for weights, Backward computes only the cotangent of the chunk's input, and
/// Weights the rest of the parameters' gradients.
using train::Slot;

struct Schedule {
  int stages = 1, microBatches = 1, chunks = 1; ///< chunks per stage
  bool isWave = false;                          ///< every other row of chunks runs backward
  bool splitsBackward = false;                  ///< it has slots for weights
  std::vector<std::vector<Slot>> slots;         ///< per stage

  /// Sets the number of micro-batches and whether backward passes are split to what the slots say.
  void deriveFromSlots();
  /// Returns the kinds of pass that each micro-batch has. Its values are kept until the last one.
  llvm::ArrayRef<train::PassKindRow> kinds() const {
    return llvm::ArrayRef(train::kPassKinds).drop_back(splitsBackward ? 0 : 1);
  }
  pipe::Positions layout() const { return {stages, chunks, isWave}; }
  int positions() const { return stages * chunks; }
  int positionOf(int stage, int chunk) const { return static_cast<int>(layout().at(stage, chunk)); }
  /// Returns the stage and chunk of a position.
  std::pair<int, int> placeOf(int position) const;
};

/// Makes a schedule by name: gpipe (Huang et al., arXiv 1811.06965), 1f1b (Narayanan et al., arXiv
/// 1806.03377, 2006.09503), interleaved (Narayanan et al., arXiv 2104.04473), zb-h1, zb-h2 (Qi et
/// al., arXiv 2401.10241), zb-v (Qi et al., arXiv 2405.15362). `chunks` is per stage, for
/// interleaved; zb-v has two, the others one. Returns none and sets `problem` if the schedule needs
/// other numbers.
std::optional<Schedule> makeSchedule(llvm::StringRef name, int stages, int microBatches, int chunks,
                                     std::string &problem);

/// Parses a file: `{"chunks": 1, "wave": false, "slots": [["F0", "F1", "B0", "B1"], ...]}`, with a
/// list for each stage; F, B and W with the micro-batch and, unless it is 0, the chunk after a dot
/// ("F3.1"). The slots determine the number of micro-batches. Does not check whether the schedule
/// can run.
std::optional<Schedule> parseSchedule(llvm::StringRef json, std::string &problem);

/// Returns true if the schedule's name is a file's.
bool isFile(llvm::StringRef schedule);
std::optional<Schedule> readSchedule(const std::string &path, std::string &problem);

/// Returns how the positions of a schedule, by name or from a file, map to stages. `chunks` is per
/// stage; 0 means the default: two for interleaved and zb-v, a file's own, one for the others.
/// Returns none and sets `problem` if the schedule has another number.
std::optional<pipe::Positions> layoutOf(const std::string &schedule, int64_t stages, int64_t chunks,
                                        std::string &problem);

/// Returns a schedule, by name or from a file, for a program with this layout. Returns none and
/// sets `problem` if there is none. Does not check whether it can run.
std::optional<Schedule> findSchedule(const std::string &schedule, const pipe::Positions &layout,
                                     int microBatches, std::string &problem);

/// Converts a schedule to and from what `choose-schedule` records. The attribute has the orders of
/// stages; how positions map to them is the program's layout.
train::ScheduleAttr toAttribute(const Schedule &schedule, llvm::StringRef name,
                                mlir::MLIRContext *context);
Schedule fromAttribute(train::ScheduleAttr attribute, const pipe::Positions &layout);

/// Returns the schedule of a program that is cut into stages. Fails with an error at the program if it
/// has none, or one that cannot run.
mlir::FailureOr<Schedule> scheduleOf(mlir::ModuleOp program);
/// The same for a program that is not cut yet, with this layout.
mlir::FailureOr<Schedule> scheduleOf(mlir::ModuleOp program, const pipe::Positions &layout);

/// Converts a slot to and from text in files and pictures: "F3", or "B0.1" in a chunk other than
/// the first. parseSlot returns none if the text is not one.
std::string slotText(const Slot &slot);
std::optional<Slot> parseSlot(llvm::StringRef text);

/// What a stage's program does, one step after another. A message is a pass's result on its way to
/// the next position, or the cotangent on its way back; everything that a pass sends to another
/// stage is one message.
struct Step {
  enum Kind {
    Await, ///< until the receives of all that this pass of the chunk has sent have begun; a transport may ask for that
    Receive, ///< blocks until the message has arrived
    Run,
    Send ///< does not block: the message is awaited before the pass runs again, when its memory is overwritten
  } kind;
  Slot slot;     ///< that runs, or whose result is sent, received or awaited (of any micro-batch)
  int peer = -1; ///< the other stage; not for Run
  bool operator==(const Step &other) const {
    return kind == other.kind && slot == other.slot && peer == other.peer;
  }
};

/// Returns the steps of each stage's program, as lib/Lower lowers a loop with this order: a slot
/// awaits what its pass sent last time, receives, runs and sends; at the end everything is awaited.
std::vector<std::vector<Step>> stepsOf(const Schedule &schedule);

/// Returns why programs with these steps do not finish, or do not do what the schedule says, at the
/// slot where that shows; "" if they do. Each pass of each micro-batch must occur once, none may
/// wait for a later one of its stage, and messages must arrive in the order in which they are sent.
std::string findProblem(const Schedule &schedule, llvm::ArrayRef<std::vector<Step>> steps);
/// Checks the schedule's own steps.
std::string findProblem(const Schedule &schedule);
/// The same, and says in which file, if it is from one of this name.
std::string findProblem(const Schedule &schedule, llvm::StringRef name);

/// Returns true if the last stage joins each backward pass with the forward pass before it: if its
/// passes alternate (train::alternate), and the stage before runs at most two micro-batches ahead. A
/// joined pass awaits what it sent last time before it receives; a stage further ahead would await
/// that receive first, so both would wait.
bool lastJoins(const Schedule &schedule);

/// The time that a slot of a chunk takes, in any unit, by kind of pass.
struct SlotCosts {
  std::array<double, train::kPassKindCount> each;
  double of(PassKind kind) const { return each[static_cast<size_t>(kind)]; }
};
/// All passes take equally long.
inline SlotCosts equalCosts() {
  SlotCosts costs;
  costs.each.fill(1);
  return costs;
}

/// The timing of a schedule that can run.
struct ScheduleReport {
  double time = 0;       ///< from the first slot's begin to the last one's end
  double idleInside = 0; ///< the max over the stages of the idle time between first and last slot
  std::vector<int>
      inFlight; ///< per stage: the max number of chunks of micro-batches whose values it keeps
  std::vector<double> work;                ///< per stage: the total time of its slots
  std::vector<std::vector<double>> begins; ///< per stage: when each slot begins
  /// Returns the bubble: what waiting adds to the slowest stage's work, as a fraction of that work;
  /// (p - 1) / m for 1F1B at equal costs.
  double bubbleShare() const;
};
/// Returns the timing, with the same costs for all stages and chunks, or one for each chunk of each
/// stage. Messages take no time.
ScheduleReport report(const Schedule &schedule, const SlotCosts &costs);
ScheduleReport reportByStage(const Schedule &schedule,
                             llvm::ArrayRef<std::vector<SlotCosts>> costs);

} // namespace partita::stages

#endif // PARTITA_STAGES_SCHEDULE_H
