// Compares ranks by what they publish of their time (stragglers.h).

#include "common/report/stragglers.h"
#include "common/grouped.h"
#include "common/mesh/mesh.h"

#include <algorithm>

namespace partita_rt {

Stragglers::Stragglers(const Program &program, int count, PositionOf positionOf)
    : program(program), positionOf(std::move(positionOf)), ranks(size_t(count)) {
  look(); // what was before does not count
}

/// A step's work without its waits.
static double ownSeconds(const std::array<double, kWorkKinds> &times) {
  double sum = 0;
  for (int kind = 0; kind < kWorkKinds; ++kind)
    if (Stragglers::isOwn(Work(kind)))
      sum += times[size_t(kind)];
  return sum;
}

Stragglers::Slowest
Stragglers::slowestBy(const std::function<double(const Times &)> &seconds) const {
  std::vector<std::pair<double, int>> all;
  for (int r = 0; r < int(ranks.size()); ++r)
    if (ranks[size_t(r)].perStep)
      all.push_back({seconds(*ranks[size_t(r)].perStep), -r}); // of equals the first
  std::sort(all.begin(), all.end());
  size_t middle = all.size() / 2;
  double median =
      all.size() % 2 ? all[middle].first : (all[middle - 1].first + all[middle].first) / 2;
  return {-all.back().second, all.back().first, median};
}

std::optional<Stragglers::Found> Stragglers::look() {
  int news = 0;
  for (int r = 0; r < int(ranks.size()); ++r) {
    Seen &seen = ranks[size_t(r)];
    seen.perStep.reset();
    const RankPosition *position = positionOf(r);
    WorkTotals now = position ? readTotals(*position) : WorkTotals{};
    if (now.steps <= seen.steps)
      continue;
    Times perStep;
    for (size_t kind = 0; kind < perStep.size(); ++kind)
      perStep[kind] = (now.seconds[kind] - seen.total[kind]) / double(now.steps - seen.steps);
    seen = {now.steps, now.seconds, perStep};
    ++news;
  }
  found.reset();
  if (news < 2)
    return found;
  found = Found{slowestBy(ownSeconds), {}};
  for (size_t kind = 0; kind < found->byKind.size(); ++kind)
    found->byKind[kind] = slowestBy([kind](const Times &times) { return times[kind]; });
  return found;
}

std::string Stragglers::text() const {
  if (!found)
    return "";
  auto milliseconds = [](double seconds) { return format("%.3g ms", 1e3 * seconds); };
  const Slowest &all = found->all;
  std::string text = "slowest: " + rankText(program, all.rank) + " with " +
                     milliseconds(all.seconds) + " of work per step, median " +
                     milliseconds(all.median);
  if (all.median > 0)
    text += format(" (+%.0f %%)", 100 * (all.seconds / all.median - 1));
  const char *separator = "; ";
  for (int kind = 0; kind < kWorkKinds; ++kind) {
    if (!isOwn(Work(kind)))
      continue;
    const Slowest &its = found->byKind[size_t(kind)];
    if (its.seconds - its.median < all.median / 100)
      continue; // it makes no difference
    text += separator + std::string(nameOf(Work(kind))) + ": " + rankText(program, its.rank) +
            " +" + milliseconds(its.seconds - its.median);
    separator = ", ";
  }
  int64_t known = std::count_if(ranks.begin(), ranks.end(),
                                [](const Seen &each) { return bool(each.perStep); });
  if (known < int64_t(ranks.size()))
    text += "; of " + std::to_string(known) + " of " + std::to_string(ranks.size()) + " ranks";
  return text;
}

} // namespace partita_rt
