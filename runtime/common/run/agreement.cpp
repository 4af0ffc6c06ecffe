// What ranks tell each other after a step (agreement.h).

#include "common/run/agreement.h"

#include <algorithm>

namespace partita_rt {

/// Returns true if some collective of a step is between stages.
static bool meetsInSteps(const Program &program) {
  if (program.stages.size() < 2)
    return true;
  for (const Stage &stage : program.stages)
    for (const CensusEntry &entry : stage.census)
      for (const Group &group : program.groups)
        if (std::string(group.name) == entry.group && group.axes.contains(program.stageAxis))
          return true;
  return false;
}

StepAgreement::StepAgreement(Rank &rank)
    : rank(rank), behind(meetsInSteps(*rank.program) ? 0 : 2) {}

StepEnd StepAgreement::takeOldest() {
  std::unique_ptr<Said> oldest = std::move(said.front());
  said.pop_front();
  wait(oldest->pending);
  const std::vector<int64_t> &all = oldest->all;
  StepEnd end{oldest->step, 0, true, all[2] != 0};
  for (size_t at = 0; at < all.size(); at += kWords) {
    end.signal = std::max(end.signal, int(all[at]));
    end.written &= all[at + 1] != 0;
  }
  return end;
}

std::vector<StepEnd> StepAgreement::afterStep(const StepEnd &mine, bool waits) {
  said.push_back(std::make_unique<Said>());
  Said &now = *said.back();
  now.step = mine.step;
  now.mine[0] = mine.signal;
  now.mine[1] = mine.written;
  now.mine[2] = mine.timeUp;
  now.all.resize(kWords * size_t(rank.ranks));
  now.pending =
      allGatherStart(*rank.world, {{now.mine, now.all.data(), kWords}}, "the end of a step");
  poll(*rank.world, 1 << 20); // reads what others have said; never waits
  std::vector<StepEnd> known;
  bool ends = false;
  while (said.size() > (waits || ends ? 0 : behind)) {
    known.push_back(takeOldest());
    ends |= known.back().signal != 0;
  }
  return known;
}

} // namespace partita_rt
