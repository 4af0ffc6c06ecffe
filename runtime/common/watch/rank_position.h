// What a rank publishes of itself while it runs: that its process lives, where it is, for whom it
// waits. Other ranks find by it which one no longer moves (watch.h), and explain their own waits.

#ifndef PARTITA_RT_COMMON_WATCH_RANK_POSITION_H
#define PARTITA_RT_COMMON_WATCH_RANK_POSITION_H

#include "common/fixed_text.h"
#include "partita_rt/program.h"
#include "partita_rt/work.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

namespace partita_rt {

/// What a rank is doing.
enum class Phase : uint8_t {
  Unknown,    ///< before the set-up, and a test's rank
  SetUp,      ///< initial values
  Step,       ///< a training step
  Validation, ///< after a step
  Saving,     ///< a checkpoint after a step
  Outputs,    ///< the results after the last step
  Ended,      ///< the rank is watched no more
};
/// May a rank stay at one position for long there? Files of any size are read and written.
inline bool takesLong(Phase phase) {
  return phase == Phase::SetUp || phase == Phase::Saving || phase == Phase::Outputs;
}

/// The rank writes all but `beats`, which a thread of its process writes, and how the run ends (endCause, isDeathPrinted,
/// reporter, reportIsDue, runEnds), which any process of the node writes. Lock-free atomics, so it may lie in a window
/// shared by processes. A text that changes while it is read may come out mixed: it is for people.
struct alignas(64) RankPosition {
  static constexpr int32_t kUnknownRank = -1, kNoWait = -2;
  using Text = std::array<std::atomic<uint64_t>, 32>;
  std::atomic<uint64_t> beats{0}; ///< advances as long as the process runs
  std::atomic<uint64_t> moves{0}; ///< advances with the rank: from kind of work to kind of work,
                                  ///< collective to collective, layer to layer
  std::atomic<int32_t> waitsFor{kNoWait}; ///< the rank for which it waits, or one of these
  std::atomic<Phase> phase{Phase::Unknown};
  std::atomic<Work> work{Work::Data};
  std::atomic<int64_t> step{0};
  std::atomic<int32_t> layer{Slot::kNoLayer};
  /// The slot's text is slotText(), "" for none; its end depends on the layer, which changes often.
  Text slot{}, wait{};

  /// With --stragglers: steps, and seconds by kind of work in them.
  std::atomic<int64_t> steps{0};
  std::array<std::atomic<double>, kWorkKinds> seconds{};

  /// A copy in another process, from its last heartbeat: it may have got further since.
  std::atomic<bool> isCopy{false};
  /// Some rank is about to print why the run ends; this one's wait need not. Of CPU programs.
  std::atomic<bool> reportIsDue{false};

  // Of processes of one node:
  /// The rank's process, from DeathWatch on until the rank has done its work. An error or a signal leaves it: from then
  /// on the cause below counts.
  std::atomic<int32_t> process{0};
  // The next three are those of the node's first rank.
  std::atomic<uint64_t> endCause{0};       ///< why its ranks end, once for all (cpu/watch/deaths.h)
  std::atomic<bool> isDeathPrinted{false}; ///< a process prints which of them died, or has
  /// The process that is about to print which rank makes no progress; 0: none.
  std::atomic<int32_t> reporter{0};
  /// A rank has printed why the run ends; in every position alike.
  std::atomic<bool> runEnds{false};

  /// Has the rank published anything here?
  bool isPublished() const { return beats > 0 || phase != Phase::Unknown; }
  void move() { moves.store(moves.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
};

void writeText(RankPosition::Text &to, const std::string &text);
std::string readText(const RankPosition::Text &from);
/// Reads a text into an array that has room for it and a zero; allocates nothing.
void readText(const RankPosition::Text &from, char *text);

/// A rank's time by kind of work, in all its steps so far.
struct WorkTotals {
  int64_t steps = 0;
  std::array<double, kWorkKinds> seconds{};
};
WorkTotals readTotals(const RankPosition &position);
/// Adds a step's times.
void addStep(RankPosition &position, const WorkClock &clock);

/// Copies what a position says, as bytes for another process of the same program.
std::string imageOf(const RankPosition &position);
/// Makes a position a copy of it, unless it is older than what is known, or the rank has ended: datagrams may come late.
/// Throws Error unless the bytes can be an image.
void readImage(RankPosition &position, const std::string &image);

/// "rank 2 of stage 1 (host gpu-3, process 4711)".
std::string processText(const std::string &rank, const std::string &host, int process);

/// "in step 12, at slot 4 (forward of h.2, micro-batch 1, layer 7)", or without slots "in step 12
/// (backward, layer 7)"; "" if nothing is known.
std::string whereText(const RankPosition &position);
/// Appends that; the text must be empty.
void appendWhere(FixedText &text, const RankPosition &position);
/// "waits in all_reduce #3 (...) for gradients for rank 2"; "" if it does not wait.
std::string waitText(const RankPosition &position);

/// "was"; of a copy "was last seen" or, `seconds` after its last heartbeat, if that is known, "was last seen, 0.4 s before,".
std::string wasText(const RankPosition &position, double seconds = -1);
/// "rank 2 (host gpu-3, process 4711) died; it was in step 12 (backward, layer 7), and waited in
/// all_reduce #3 (...) for rank 0". Of a copy: "it was last seen, 0.4 s before, in step 12 ...";
/// `seconds`: since its last heartbeat, below 0 if that is not known. `position` may be null.
std::string deathText(const std::string &name, const RankPosition *position, double seconds = -1);
/// Appends that; a signal's handler may call it.
void appendDeath(FixedText &text, const char *name, const RankPosition *position,
                 double seconds = -1);
/// How many waiting ranks a message names; it counts the others.
constexpr int kNamedWaiters = 8;

/// What the rank does from here on. Ranks without a position (of one rank, of tests) ignore it.
void enterPhase(const Rank &rank, Phase phase);
void noteStepNumber(const Rank &rank, int64_t step);

/// A scope in which the rank is in a phase; afterwards the previous one continues.
class PhaseScope {
public:
  PhaseScope(const Rank &rank, Phase phase);
  ~PhaseScope();
  PhaseScope(const PhaseScope &) = delete;
  PhaseScope &operator=(const PhaseScope &) = delete;

private:
  const Rank &rank;
  Phase before;
};

/// A scope in which the rank waits for no particular other one: for its GPU, in a gather of all.
class WaitScope {
public:
  /// `position` may be null.
  WaitScope(RankPosition *position, const std::string &what);
  ~WaitScope();
  WaitScope(const WaitScope &) = delete;
  WaitScope &operator=(const WaitScope &) = delete;

private:
  RankPosition *position;
};

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_WATCH_RANK_POSITION_H
