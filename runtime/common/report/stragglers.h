// Which rank is slower than the others, and at what (--stragglers). Each rank publishes its time by
// kind of work with its position (common/watch/rank_position.h), so nothing is exchanged for it: rank
// 0 looks at what was reported to it, at most a heartbeat ago.
//
// A fast rank waits for a slow one, and then has as long a step. So waits do not count: the slowest
// rank is the one with the most work of its own, which waits least.

#ifndef PARTITA_RT_COMMON_REPORT_STRAGGLERS_H
#define PARTITA_RT_COMMON_REPORT_STRAGGLERS_H

#include "common/watch/rank_position.h"

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace partita_rt {

class Stragglers {
public:
  using PositionOf = std::function<const RankPosition *(int rank)>;
  /// `positionOf`: null for a rank of which nothing is known.
  Stragglers(const Program &program, int ranks, PositionOf positionOf);

  /// The slowest rank, and seconds of a step without waits: its own, and the ranks' median.
  struct Slowest {
    int rank;
    double seconds, median;
  };
  /// By all of a rank's work, and by each kind of it; waits are no such kind.
  struct Found {
    Slowest all;
    std::array<Slowest, kWorkKinds> byKind;
  };
  static bool isOwn(Work kind) { return kind != Work::Collectives; }
  /// What has become known since the last call: averages over the steps since. Nothing, unless it is
  /// news of at least two ranks.
  std::optional<Found> look();
  /// "slowest: rank 3 with 12.1 ms of work per step, median 10 ms (+21 %); forward: rank 3 +1.5 ms, ...",
  /// of the last look; "" if it found nothing.
  std::string text() const;

private:
  using Times = std::array<double, kWorkKinds>;
  struct Seen {
    int64_t steps = 0;
    Times total = {};
    std::optional<Times> perStep; ///< since the look before
  };
  /// Returns the rank with the most, and the median.
  Slowest slowestBy(const std::function<double(const Times &)> &seconds) const;

  const Program &program;
  PositionOf positionOf;
  std::vector<Seen> ranks;
  std::optional<Found> found; ///< by the last look
};

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_REPORT_STRAGGLERS_H
