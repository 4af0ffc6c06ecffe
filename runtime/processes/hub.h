// Rank 0's decisions for all ranks (rendezvous.h): when a gather is complete, and why and how all
// ranks end. No sockets, no thread: frames and the time go in, frames come out.

#ifndef PARTITA_RT_PROCESSES_HUB_H
#define PARTITA_RT_PROCESSES_HUB_H

#include "common/watch/watch.h"
#include "processes/rendezvous.h"
#include "processes/wire.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <set>

namespace partita_rt::processes {

constexpr uint32_t kNoRank = ~uint32_t(0);
/// Frames of the rendezvous. Several fields are packed into one text (wire.h).
enum FrameKind : uint8_t {
  // From a rank to rank 0:
  Hello = 1, ///< the fields of Greeting
  Gather,    ///< number; what, text
  Report,    ///< number: the cause; message, question
  Answer,    ///< number of the question; text
  Goodbye,
  Alive, ///< an image of the rank's position (common/watch/rank_position.h)
  // From rank 0 to a rank:
  Accepted,
  Refused,       ///< the reason
  Welcome,       ///< all peers
  Gathered,      ///< number; by rank, text
  Question,      ///< number; text
  WhereAreYou,   ///< a question that asks every rank for what it waits
  End,           ///< number: the rank that prints, or kNoRank; message
  EndByLostRank, ///< the same, because a rank has died or makes no progress
  Farewell,      ///< all have said goodbye
  Heartbeat,     ///< rank 0 is alive; an image of its position, if it has one
  // Between ranks that have lost rank 0 (succession.h), at each rank's own port; the run's name,
  // message:
  Lost, ///< from a rank that stays silent if it gets an answer
  Here, ///< the answer
  Over, ///< all end, the reason has been printed; also sent to rank 0, in case it resumes
};

using Clock = std::chrono::steady_clock;

/// How often ranks send a heartbeat, whatever they are waiting for.
inline Clock::duration heartbeatEvery(double timeout) {
  return std::chrono::milliseconds(int64_t(heartbeatSeconds(timeout) * 1000));
}

/// "rank 2 (host gpu-3, process 4711)".
std::string nameOf(const std::vector<Peer> &peers, int rank);
/// Does `peer` run on the host of this process? One of the two is rank 0, `other` the one that is not. False if that is not known.
bool runsBeside(const Peer &peer, const Peer &other);

class Hub {
public:
  using Send = std::function<void(int rank, Frame frame)>;
  /// `send` is also called for rank 0 itself.
  Hub(std::vector<Peer> peers, double timeout, Send send);

  /// Throws Error for a frame that ranks never send.
  void handle(int rank, const Frame &frame, Clock::time_point now);
  /// The rank's connection has ended. `isSilent`: its kernel has not answered for a minute, so its host may be gone, or the
  /// network between; else the process has ended.
  void closed(int rank, Clock::time_point now, bool isSilent = false);
  /// Call this every few hundredths of a second.
  void tick(Clock::time_point now);
  /// What another rank has published, for any thread.
  const RankPosition &positionOf(int rank) const { return positions[size_t(rank)]; }
  /// What rank 0 publishes.
  void setPosition(const RankPosition *position) { seen[0] = position; }
  /// Another rank's, in memory that this process shares. For any thread.
  void see(int rank, const RankPosition &position) { near[size_t(rank)] = &position; }
  void setTimeout(double seconds) { timeout = seconds; }

private:
  std::string nameOf(int rank) const { return partita_rt::processes::nameOf(peers, rank); }
  void lookNear(int rank);
  void gather(int rank, uint32_t number, const std::string &what, const std::string &text,
              Clock::time_point now);
  void report(int rank, Cause cause, std::string message, std::string question,
              Clock::time_point now);
  void reportLostRank(int rank, Cause cause, std::string message, Clock::time_point now);
  void ask(Clock::time_point now);
  void lookForGather(Clock::time_point now);
  void lookAtPositions(Clock::time_point now);
  std::string withAnswers(Clock::time_point now) const;
  void end(const std::string &message, FrameKind kind = End, uint32_t speaker = 0);
  /// Returns "ranks 1, 3", or a single one with its host.
  std::string namesOf(const std::vector<int> &ranks) const;

  struct Failure {
    Cause cause;
    int rank;
    std::string message, question;
    bool asksWhere = false;   ///< each rank says for whom it waits
    int silent = -1;          ///< a rank that is not asked
    std::set<int> named = {}; ///< ranks of which the message says that
  };
  enum class State : uint8_t { Alive, Left, Dead };

  std::vector<Peer> peers;
  std::vector<State> states;
  double timeout;
  Send send;
  std::vector<RankPosition> positions;                 ///< of the other ranks
  std::vector<std::atomic<const RankPosition *>> near; ///< likewise, where they are shared
  std::vector<const RankPosition *> seen;              ///< by rank; null: nothing is known
  std::vector<Clock::time_point> heardAt;              ///< by rank: its last heartbeat
  Watch watch;
  Clock::time_point nextLook;
  Clock::time_point nextHeartbeat; ///< the first one is sent at once

  // The pending gather: a rank starts no other before it is complete.
  uint32_t number = 0;
  std::string what;
  std::vector<std::optional<std::string>> texts; ///< empty: no gather is pending
  Clock::time_point since;
  int begunBy = 0; ///< a rank

  std::optional<Failure> failure;                  ///< the one that counts so far
  Clock::time_point decideAt;                      ///< when the failure becomes final
  std::vector<std::optional<std::string>> answers; ///< empty: no question was asked
  bool ended = false;
};

} // namespace partita_rt::processes

#endif // PARTITA_RT_PROCESSES_HUB_H
