// What rank 0 decides for all ranks (rendezvous.h): when a gather is complete, and why and how all
// end. No sockets, no thread: frames and the time go in, frames come out.

#ifndef PARTITA_RT_CUDA_HUB_H
#define PARTITA_RT_CUDA_HUB_H

#include "cuda/ranks/rendezvous.h"
#include "cuda/ranks/wire.h"

#include <chrono>
#include <optional>

namespace partita_rt::cuda {

/// Frames of the rendezvous. Texts of several fields are packed (wire.h).
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
  End,      ///< number: the rank that speaks; message
  Farewell, ///< all have said goodbye
};

using Clock = std::chrono::steady_clock;

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
  bool hasEnded() const { return ended; }

  /// "rank 2 (host gpu-3, process 4711)".
  std::string nameOf(int rank) const;

private:
  void gather(int rank, uint32_t number, const std::string &what, const std::string &text,
              Clock::time_point now);
  void report(int rank, Cause cause, std::string message, std::string question,
              Clock::time_point now);
  void ask(Clock::time_point now);
  void end(const std::string &message);
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

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_HUB_H
