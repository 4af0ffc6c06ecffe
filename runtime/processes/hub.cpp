// Gathers, and ends all ranks (hub.h).

#include "processes/hub.h"
#include "common/watch/rank_position.h"
#include "partita_rt/machine.h"
#include "partita_rt/types.h"

#include <tuple>

namespace partita_rt::processes {

static Clock::time_point after(Clock::time_point now, double seconds) {
  return now + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

static double secondsAt(Clock::time_point now) {
  return std::chrono::duration<double>(now.time_since_epoch()).count();
}

static std::vector<std::string> namesOfAll(const std::vector<Peer> &peers) {
  std::vector<std::string> names;
  for (size_t r = 0; r < peers.size(); ++r)
    names.push_back(nameOf(peers, int(r)));
  return names;
}

bool runsBeside(const Peer &peer, const Peer &other) {
  return other.isBesideRankZero && peer.process > 0 && !processCannotRun(peer.process);
}

Hub::Hub(std::vector<Peer> all, double timeout, Send send)
    : peers(std::move(all)), states(peers.size(), State::Alive), timeout(timeout),
      send(std::move(send)), positions(peers.size()), near(peers.size()), seen(peers.size()),
      heardAt(peers.size()), watch(namesOfAll(peers), 0) {
  watch.setRuns([this](int rank) { return runsBeside(peers[size_t(rank)], peers[size_t(rank)]); });
}

std::string nameOf(const std::vector<Peer> &peers, int rank) {
  const Peer &peer = peers[size_t(rank)];
  return processText(peer.name, peer.host, peer.process);
}

std::string Hub::namesOf(const std::vector<int> &ranks) const {
  if (ranks.size() == 1)
    return nameOf(ranks[0]);
  std::string text;
  for (size_t i = 0; i < ranks.size() && i < 16; ++i)
    text += (i ? ", " : "ranks ") + std::to_string(ranks[i]);
  return ranks.size() > 16 ? text + ", ..." : text;
}

void Hub::handle(int rank, const Frame &frame, Clock::time_point now) {
  switch (frame.kind) {
  case FrameKind::Gather: {
    std::vector<std::string> fields = unpack(frame.text, 2);
    return gather(rank, frame.number, fields[0], fields[1], now);
  }
  case FrameKind::Report: {
    std::vector<std::string> fields = unpack(frame.text, 2);
    if (frame.number > uint32_t(Cause::Sequel))
      break;
    return report(rank, Cause(frame.number), fields[0], fields[1], now);
  }
  case FrameKind::Answer:
    if (!answers.empty())
      answers[size_t(rank)] = frame.text;
    return tick(now);
  case FrameKind::Alive:
    readImage(positions[size_t(rank)], frame.text);
    seen[size_t(rank)] = &positions[size_t(rank)];
    lookNear(rank);
    heardAt[size_t(rank)] = now;
    return;
  case FrameKind::Goodbye:
    states[size_t(rank)] = State::Left;
    for (State state : states)
      if (state == State::Alive)
        return tick(now);
    for (size_t r = 0; r < peers.size(); ++r)
      send(int(r), {FrameKind::Farewell, 0, ""});
    return;
  case FrameKind::Over: // rank 0 was unresponsive for longer than the others wait
    return ended ? void() : end("", FrameKind::EndByLostRank, kNoRank);
  default:
    break;
  }
  fail("received a malformed message from rank %d", rank);
}

void Hub::gather(int rank, uint32_t its, const std::string &where, const std::string &text,
                 Clock::time_point now) {
  if (texts.empty()) {
    number = its;
    what = where;
    since = now;
    begunBy = rank;
    texts.resize(peers.size());
  }
  if (its != number || where != what || texts[size_t(rank)])
    return report(rank, Cause::Error,
                  "the ranks differ: rank " + std::to_string(rank) + " is at " + where + ", rank " +
                      std::to_string(begunBy) + " at " + what,
                  "", now);
  texts[size_t(rank)] = text;
  std::vector<std::string> all;
  for (const std::optional<std::string> &each : texts) {
    if (!each)
      return tick(now);
    all.push_back(*each);
  }
  texts.clear();
  std::string packed = pack(all);
  if (packed.size() >= Connection::kMostBytes)
    return report(rank, Cause::Error,
                  "the texts of all ranks at " + what + " have " + std::to_string(packed.size()) +
                      " bytes; less than " + std::to_string(Connection::kMostBytes) +
                      " are possible",
                  "", now);
  for (size_t r = 0; r < peers.size(); ++r)
    send(int(r), {FrameKind::Gathered, number, packed});
}

/// A position in shared memory is newer than the last heartbeat's, and remains when its process has died.
void Hub::lookNear(int rank) {
  if (const RankPosition *its = near[size_t(rank)]; its && its->isPublished())
    seen[size_t(rank)] = its;
}

void Hub::closed(int rank, Clock::time_point now, bool isSilent) {
  bool left = states[size_t(rank)] == State::Left;
  states[size_t(rank)] = State::Dead;
  if (left)
    return;
  lookNear(rank);
  double seconds = std::chrono::duration<double>(now - heardAt[size_t(rank)]).count();
  if (isSilent && seen[size_t(rank)])
    reportLostRank(rank, Cause::Stall, stoppedText(nameOf(rank), seconds, *seen[size_t(rank)]),
                   now);
  else
    reportLostRank(rank, Cause::Death, deathText(nameOf(rank), seen[size_t(rank)], seconds), now);
}

/// Reports that a rank has died or makes no progress; the others are asked for what they wait.
void Hub::reportLostRank(int rank, Cause cause, std::string message, Clock::time_point now) {
  report(rank, cause, std::move(message), "", now);
  if (failure && failure->cause == cause && failure->rank == rank)
    failure->asksWhere = true;
}

/// Waits briefly for a better reason: several ranks may see the same error, or one rank's end.
void Hub::report(int rank, Cause cause, std::string message, std::string question,
                 Clock::time_point now) {
  if (ended || !answers.empty())
    return;
  if (cause != Cause::Death && cause != Cause::Stall && peers.size() > 1)
    message = peers[size_t(rank)].name + ": " + message;
  if (!failure || std::tie(cause, rank) < std::tie(failure->cause, failure->rank)) {
    decideAt = after(now, cause == Cause::Sequel ? 2 : 0.05);
    failure = Failure{cause, rank, std::move(message), std::move(question)};
  }
}

/// Checks whether ranks are missing at the pending gather.
void Hub::lookForGather(Clock::time_point now) {
  if (failure || texts.empty())
    return;
  std::vector<int> missing, gone;
  double most = timeout;
  for (size_t r = 0; r < peers.size(); ++r) {
    if (texts[r])
      continue;
    (states[r] == State::Alive ? missing : gone).push_back(int(r));
    if (seen[r] && takesLong(seen[r]->phase))
      most = longSeconds(timeout);
  }
  if (!gone.empty())
    report(begunBy, Cause::Error,
           "waits at " + what + " for " + namesOf(gone) + ", which " +
               (gone.size() == 1 ? "has" : "have") + " ended",
           "", now);
  else if (now > after(since, most))
    report(begunBy, Cause::Timeout,
           "waited " + std::to_string(int64_t(most)) + " s at " + what + " for " + namesOf(missing),
           "", now);
}

/// Checks whether all ranks send heartbeats, and make progress.
void Hub::lookAtPositions(Clock::time_point now) {
  if (failure || now < nextLook)
    return;
  nextLook = now + heartbeatEvery(timeout) / 4;
  for (size_t r = 0; r < peers.size(); ++r)
    if (states[r] != State::Alive)
      seen[r] = nullptr;
  std::string text = watch.look(seen, secondsAt(now), timeout);
  if (text.empty())
    return;
  reportLostRank(watch.subject(), Cause::Stall, text, now);
  failure->silent = watch.subject();
  failure->named = watch.namedWaiters();
}

void Hub::tick(Clock::time_point now) {
  if (ended)
    return;
  if (now >= nextHeartbeat) {
    for (size_t r = 1; r < peers.size(); ++r)
      if (states[r] != State::Dead)
        send(int(r), {FrameKind::Heartbeat, 0, seen[0] ? imageOf(*seen[0]) : ""});
    nextHeartbeat = now + heartbeatEvery(timeout);
  }
  lookForGather(now);
  lookAtPositions(now);
  if (!failure || now < decideAt)
    return;
  if (failure->question.empty() && !failure->asksWhere)
    return end(failure->message);
  if (answers.empty())
    return ask(now);
  for (size_t r = 0; r < peers.size(); ++r)
    if (!answers[r] && now < after(decideAt, 1))
      return;
  bool isLostRank = failure->cause == Cause::Stall || failure->cause == Cause::Death;
  end(withAnswers(now), isLostRank ? FrameKind::EndByLostRank : FrameKind::End);
}

/// Returns the message of the failure, what ranks have answered, and who has not; before that, which
/// of them have stopped.
std::string Hub::withAnswers(Clock::time_point now) const {
  std::string message = failure->message, stopped;
  int named = 0, more = 0;
  auto append = [&](const std::string &its) {
    if (++named <= kNamedWaiters)
      message += "; " + its;
    else
      ++more;
  };
  for (size_t r = 0; r < peers.size(); ++r) {
    if (failure->named.count(int(r)))
      continue;
    if (answers[r] && !answers[r]->empty())
      append(nameOf(int(r)) + " " + *answers[r]);
    else if (std::string its =
                 answers[r] ? "" : watch.silenceOf(int(r), seen[r], secondsAt(now), timeout);
             !its.empty())
      stopped += its + "; ";
    else if (!answers[r])
      append(nameOf(int(r)) + " does not answer");
  }
  return stopped + message + (more ? "; " + std::to_string(more) + " more ranks wait" : "");
}

void Hub::ask(Clock::time_point now) {
  decideAt = now;
  answers.resize(peers.size());
  for (size_t r = 0; r < peers.size(); ++r)
    if (states[r] == State::Dead || int(r) == failure->silent)
      answers[r] = "";
    else
      send(int(r), {failure->asksWhere ? FrameKind::WhereAreYou : FrameKind::Question, 0,
                    failure->question});
}

void Hub::end(const std::string &message, FrameKind kind, uint32_t speaker) {
  ended = true;
  for (size_t r = 0; r < peers.size(); ++r) // rank 0 itself last: the frame ends it
    if (size_t other = peers.size() - 1 - r; states[other] != State::Dead)
      send(int(other), {kind, speaker, message});
}

} // namespace partita_rt::processes
