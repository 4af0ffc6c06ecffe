// Finds the rank that no longer makes progress (watch.h).

#include "common/watch/watch.h"
#include "common/grouped.h"

#include <algorithm>
#include <set>

namespace partita_rt {

void Watch::see(const RankPosition *position, Seen &seen, double now) const {
  uint64_t beats = position->beats.load(std::memory_order_acquire), moves = position->moves;
  if (beats == 0)
    return;
  int32_t waitsFor = position->waitsFor;
  if (!seen.known || beats != seen.beats)
    seen.beatAt = now;
  // Whoever waits may learn of another rank meanwhile, without getting on.
  bool waits = waitsFor != RankPosition::kNoWait, waited = seen.waitsFor != RankPosition::kNoWait;
  if (!seen.known || moves != seen.moves || waits != waited)
    seen.moveAt = now;
  seen.beats = beats;
  seen.moves = moves;
  seen.waitsFor = waitsFor;
  seen.known = true;
}

static std::string secondsText(double value) {
  return format(value < 10 ? "%.1f" : "%.0f", value) + " s";
}

static std::string positionText(const RankPosition &position, const std::string &is) {
  std::string where = whereText(position), wait = waitText(position);
  if (where.empty() && wait.empty())
    return "";
  return std::string("; it ") + (where.empty() ? wait : is + " " + where) +
         (where.empty() || wait.empty() ? "" : ", and " + wait);
}

std::string positionText(const RankPosition &position) { return positionText(position, "is"); }

std::string lastPositionText(const RankPosition &position) {
  return positionText(position, wasText(position));
}

std::string stoppedText(const std::string &name, double seconds, const RankPosition &position) {
  return name + " has stopped: no heartbeat from its process for " + secondsText(seconds) +
         lastPositionText(position);
}

std::string silentText(const std::string &name, bool runs, double seconds,
                       const RankPosition &position) {
  if (!runs)
    return stoppedText(name, seconds, position);
  return name + " is slow: its process runs, but it has sent no heartbeat for " +
         secondsText(seconds) + ": its host may be overloaded, or --timeout too short" +
         lastPositionText(position);
}

/// Returns the ranks that wait for it, and those that wait for these, as "; rank 0 waits in ...".
std::string Watch::waitersOf(int rank, const std::vector<const RankPosition *> &positions) {
  std::string text;
  std::set<int> seen{rank};
  named.clear();
  std::vector<int> next{rank};
  size_t more = 0;
  for (size_t at = 0; at < next.size(); ++at)
    for (int r = 0; r < int(ranks.size()); ++r) {
      if (!ranks[size_t(r)].known || ranks[size_t(r)].waitsFor != next[at] ||
          !seen.insert(r).second)
        continue;
      next.push_back(r);
      if (named.size() == size_t(kNamedWaiters)) {
        ++more;
        continue;
      }
      named.insert(r);
      text += "; " + names[size_t(r)] + " " + waitText(*positions[size_t(r)]);
    }
  return more ? text + "; " + std::to_string(more) + " more ranks wait for these" : text;
}

/// Follows waits to a rank that does not wait; -1 if there is none, or it is unknown.
int Watch::rootOf(int rank, const std::vector<const RankPosition *> &positions) const {
  std::set<int> seen;
  while (rank >= 0 && rank < int(ranks.size()) && positions[size_t(rank)] &&
         ranks[size_t(rank)].known) {
    if (ranks[size_t(rank)].waitsFor == RankPosition::kNoWait)
      return rank;
    if (!seen.insert(rank).second)
      return -1;
    rank = ranks[size_t(rank)].waitsFor;
  }
  return -1;
}

/// A rank that moves, and for which another has waited.
std::string Watch::slowText(const std::vector<const RankPosition *> &positions, double now,
                            double timeout) {
  for (int r = 0; r < int(ranks.size()); ++r) {
    const Seen &waiter = ranks[size_t(r)];
    // Later than others are found: what they wait for may have stopped since.
    if (!positions[size_t(r)] || !waiter.known || waiter.waitsFor == RankPosition::kNoWait ||
        takesLong(positions[size_t(r)]->phase) || isSilent(waiter, now, timeout) ||
        now - waiter.moveAt <= timeout + patienceSeconds(timeout) / 2)
      continue;
    int root = rootOf(r, positions);
    if (root < 0 || takesLong(positions[size_t(root)]->phase))
      continue;
    // It may be stuck: what is known of its last move may be two heartbeats old. Then it is found
    // as such soon, or moves.
    if (now - ranks[size_t(root)].moveAt > timeout - 2 * heartbeatSeconds(timeout))
      continue;
    found = root;
    return names[size_t(root)] + " is slow: " + names[size_t(r)] + " has waited " +
           secondsText(now - waiter.moveAt) + " for it" + positionText(*positions[size_t(root)]) +
           waitersOf(root, positions);
  }
  return "";
}

std::string Watch::silenceOf(int rank, const RankPosition *position, double now,
                             double timeout) const {
  const Seen &seen = ranks[size_t(rank)];
  return position && seen.known && isSilent(seen, now, timeout)
             ? silentText(rank, now - seen.beatAt, *position)
             : "";
}

std::string Watch::look(const std::vector<const RankPosition *> &positions, double now,
                        double timeout) {
  std::string stuck;
  double stuckSince = 0, stuckMost = 0;
  bool isOneSilent = false;
  for (int r = 0; r < int(ranks.size()); ++r) {
    Seen &seen = ranks[size_t(r)];
    const RankPosition *position = positions[size_t(r)];
    if (!position)
      continue;
    see(position, seen, now);
    if (!seen.known || position->phase == Phase::Ended)
      continue;
    if (r != self && now - seen.beatAt > timeout) {
      found = r;
      return silentText(r, now - seen.beatAt, *position) + waitersOf(r, positions);
    }
    isOneSilent |= r != self && isSilent(seen, now, timeout);
    double most = takesLong(position->phase) ? longSeconds(timeout) : timeout;
    bool isStill = seen.waitsFor == RankPosition::kNoWait && now - seen.moveAt > most;
    if (isStill && stuck.empty() && (r == self || !isSilent(seen, now, timeout))) {
      found = r;
      stuckSince = seen.moveAt;
      stuckMost = most;
      stuck = names[size_t(r)] + " is stuck: its process lives, but it has not moved for " +
              secondsText(now - seen.moveAt) + positionText(*position) + waitersOf(r, positions);
    }
  }
  // A process that stops within Open MPI's shared queues keeps others in them, which do not wait as far as we know. So
  // if one may have stopped, that is found out first: it is certain within the time-out. One that has been silent
  // since a time-out later is not the cause.
  if (!stuck.empty())
    return isOneSilent && now - stuckSince <= stuckMost + timeout ? "" : stuck;
  return slowText(positions, now, timeout);
}

} // namespace partita_rt
