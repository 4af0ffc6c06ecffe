// What ranks tell each other after each step, so that they all do the same: any of them may have got
// a signal, and all must save after the same step.
//
// Where all ranks meet within a step anyway, they agree after the step at once. With pipeline stages
// that do not (zero bubble), that would make each wait for the last one. There they agree two steps
// later: what a rank says after step n, the others read when they end step n + 1, and it is complete
// once they all have begun step n + 2.

#ifndef PARTITA_RT_COMMON_RUN_AGREEMENT_H
#define PARTITA_RT_COMMON_RUN_AGREEMENT_H

#include "partita_rt/comm.h"

#include <deque>
#include <memory>
#include <vector>

namespace partita_rt {

/// What a rank, or all of them together, have to say after a step.
struct StepEnd {
  int64_t step = 0;
  int signal = 0;       ///< that a rank has noted; 0: none
  bool written = false; ///< every rank has written its file of the save under way
  bool timeUp = false;  ///< by rank 0's clock
};

class StepAgreement {
public:
  explicit StepAgreement(Rank &rank);

  /// Called by every rank after each step. Returns what all have said after one or more steps, in
  /// their order: the same on every rank. `waits`: the ranks meet now anyway.
  std::vector<StepEnd> afterStep(const StepEnd &mine, bool waits);

private:
  static constexpr size_t kWords = 3;
  /// What all ranks say after a step.
  struct Said {
    int64_t step;
    int64_t mine[kWords];
    std::vector<int64_t> all;
    Pending pending;
  };
  StepEnd takeOldest();

  Rank &rank;
  size_t behind; ///< how many steps it takes until nobody waits
  std::deque<std::unique_ptr<Said>> said;
};

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_RUN_AGREEMENT_H
