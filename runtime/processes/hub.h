// What rank 0 decides for all ranks (rendezvous.h): when a gather is complete, and why and how all
// end. No sockets, no thread: frames and the time go in, frames come out.

#ifndef PARTITA_RT_PROCESSES_HUB_H
#define PARTITA_RT_PROCESSES_HUB_H

#include "processes/rendezvous.h"
#include "processes/wire.h"

#include <algorithm>
#include <chrono>
#include <optional>

namespace partita_rt::processes {

/// Frames of the rendezvous. Texts of several fields are packed (wire.h).
constexpr uint32_t kNobody = ~uint32_t(0);
enum FrameKind : uint8_t {
  // From a rank to rank 0:
  Hello = 1, ///< the fields of Greeting
  Gather,    ///< number; what, text
  Report,    ///< number: the cause; message, question
  Answer,    ///< number of the question; text
  Goodbye,
  // From rank 0 to a rank:
  Accepted,
  Refused,  ///< why
  Welcome,  ///< all peers
  Gathered, ///< number; by rank, text
  Question, ///< number; text
  End,      ///< number: the rank that speaks, or none; message
  Farewell, ///< all have said goodbye
  Beat,     ///< rank 0 lives
  // Between ranks that have lost rank 0 (succession.h), at a rank's own port; the run's name,
  // message:
  Lost, ///< of one that will not speak if there is an answer
  Here, ///< the answer
  Over, ///< all end, it has been said why; also to rank 0, in case it goes on after all
};

using Clock = std::chrono::steady_clock;

/// How often rank 0 is heard of, whatever it waits for.
inline Clock::duration beatEvery(double timeout) {
  return std::chrono::milliseconds(int64_t(std::min(timeout * 250, 1000.0)));
}

/// "rank 2 (host gpu-3, process 4711)".
std::string nameOf(const std::vector<Peer> &peers, int rank);

class Hub {
public:
  using Send = std::function<void(int rank, Frame frame)>;
  /// `send` is also called for rank 0 itself.
  Hub(std::vector<Peer> peers, double timeout, Send send);

  /// Throws Error for a frame that no rank sends.
  void handle(int rank, const Frame &frame, Clock::time_point now);
  /// The rank's connection has ended.
  void closed(int rank, Clock::time_point now);
  /// To be called every few hundredths of a second.
  void tick(Clock::time_point now);

private:
  std::string nameOf(int rank) const { return partita_rt::processes::nameOf(peers, rank); }
  void gather(int rank, uint32_t number, const std::string &what, const std::string &text,
              Clock::time_point now);
  void report(int rank, Cause cause, std::string message, std::string question,
              Clock::time_point now);
  void ask(Clock::time_point now);
  void end(const std::string &message, uint32_t speaker = 0);
  /// "ranks 1, 3", or one of them with its host.
  std::string namesOf(const std::vector<int> &ranks) const;

  struct Failure {
    Cause cause;
    int rank;
    std::string message, question;
  };
  enum class State : uint8_t { Alive, Left, Dead };

  std::vector<Peer> peers;
  std::vector<State> states;
  double timeout;
  Send send;
  Clock::time_point nextBeat; ///< at once, the first time

  // The gather under way: a rank begins no other one before it is complete.
  uint32_t number = 0;
  std::string what;
  std::vector<std::optional<std::string>> texts; ///< empty: none is under way
  Clock::time_point since;
  int first = 0; ///< the rank that began it

  std::optional<Failure> failure;                  ///< the one that counts so far
  Clock::time_point decideAt;                      ///< when it is what all end with
  std::vector<std::optional<std::string>> answers; ///< empty: nothing was asked
  bool ended = false;
};

} // namespace partita_rt::processes

#endif // PARTITA_RT_PROCESSES_HUB_H
