// Point-to-point messages between the ranks of two pipeline stages, over the channels of the
// program's table (Program::channels).
//
//     awaitSent(rank, kOnward);                 // y of the last micro-batch is sent
//     receive(rank, kActivations, {{x, 8 * 384}}, "layer 3", micro);
//     ...                                       // x holds what the previous stage has sent
//     sendLater(rank, kOnward, {{y, 8 * 384}}, "layer 6", micro);
//
// is one pass of a micro-batch as emitted. These calls consist of receiveStart, sendStart and wait.
//
// Contract: both ends of a channel start the same messages in the same order, with equal types,
// counts and micro-batches. Each message has a number within its channel; a mismatch is an error
// that reports where each end is, before data are touched. (NCCL compares nothing: cuda/README.md
// says when a mismatch shows.) If one end waits for a message that the other never starts, it fails
// when the other's function returns or, if both wait, after PARTITA_RT_TIMEOUT; the error says who
// waits for whom. A buffer belongs to the message from start to wait. Waits may come in any order;
// a message that is started and never waited for is an error at the end of the step. With more than
// 64 pending messages at one end, a start waits for the oldest. In a CUDA program, starts and waits
// order streams, as those of collectives do (cuda/comm.h), and the host waits for neither.
//
// A message moves once both ends have started it, whatever else the ranks wait for. The wait for a
// send may return before or after the message has arrived: small messages may be buffered. A schedule
// must therefore finish even if no wait for a send returns before its receive has started, which
// PARTITA_RT_CHANNELS=rendezvous enforces (README.md, "Build").
//
// Bytes are counted once at each end. Neither end adds or converts anything: the bits that arrive are
// those that were sent.

#ifndef PARTITA_RT_CHANNEL_H
#define PARTITA_RT_CHANNEL_H

#include "partita_rt/comm.h"
#include <initializer_list>
#include <vector>

namespace partita_rt {

class ChannelEnd;

/// A pending message. Default-constructed: nothing to wait for.
struct PendingMessage {
  ChannelEnd *end = nullptr;
  uint64_t number = 0;
};

/// Starts sending the buffers `buffers`, all of one type, over channel number `channel`, whose
/// `from` is the rank's stage. `why` names the message's layer or value in reports, and must
/// outlive the call (a literal); `microBatch` is -1 if the message belongs to none. Throws Error if
/// the rank is not at this end of the channel, or the other end has started another message.
PendingMessage sendStart(Rank &rank, int channel, Bucket buffers, const char *why,
                         int64_t microBatch = -1);
/// Starts receiving, at the other end.
PendingMessage receiveStart(Rank &rank, int channel, Bucket buffers, const char *why,
                            int64_t microBatch = -1);
/// Returns once the message is sent or received, so the buffers are the rank's again.
void wait(PendingMessage message);

/// Start and wait.
inline void send(Rank &rank, int channel, Bucket buffers, const char *why,
                 int64_t microBatch = -1) {
  wait(sendStart(rank, channel, buffers, why, microBatch));
}
inline void receive(Rank &rank, int channel, Bucket buffers, const char *why,
                    int64_t microBatch = -1) {
  wait(receiveStart(rank, channel, buffers, why, microBatch));
}

/// Moves the rank's messages as far as possible without waiting, as starts, waits and polls of groups
/// (`poll(rank, rows, bytes)`) also do.
void pollMessages(Rank &rank);

/// Marks the start of a slot of the stage's schedule, which reports of failures and time-outs name.
/// `what` is a literal: "forward of h.2".
void beginSlot(Rank &rank, int64_t number, int64_t microBatch, const char *what);

/// The memory for values that a stage saves for later passes of its micro-batches in flight: equal,
/// contiguous blocks in the arena or, for offloaded activations, in pinned host memory. There is
/// one ring per span from the pass that saves values to the last one that reads them.
struct Ring {
  int64_t blocks, bytes, offset;
  Home home = Home::Device;
};

/// Marks the start of a pass of a micro-batch, the next slot of the stage's schedule. From here on
/// Rank::inFlight() points into the micro-batch's blocks of these rings. `what` is a literal:
/// "forward".
void beginPass(Rank &rank, std::initializer_list<Ring> rings, int64_t microBatch, const char *what);

/// Marks that the calls from here on compute a layer of the model, or something before or after the
/// layers (Slot). Reports name it, with the slot of a stage. One store and a count.
void beginLayer(Rank &rank, int64_t layer);

/// Like sendStart, but awaitSent does the waiting.
void sendLater(Rank &rank, int channel, Bucket buffers, const char *why, int64_t microBatch);
/// Waits until everything that sendLater has started on the channel is sent.
void awaitSent(Rank &rank, int channel);

/// Messages and bytes started so far.
struct MessageCount {
  int64_t messages = 0;
  int64_t bytes = 0;
};

/// One rank's end of a channel. Made by the launcher.
class ChannelEnd {
public:
  virtual ~ChannelEnd() = default;
  const char *name() const { return channelName; }
  bool sends() const { return isSender; }
  const MessageCount &count() const { return counted; }
  /// Those of their bytes that this end has handed to a transport for a rank of another node.
  int64_t sentToOtherNodes() const { return toOtherNodes; }
  /// A fingerprint of all messages started so far; both ends must agree.
  uint64_t history() const { return seen; }
  /// The clock that counts time spent here as collectives; may be null (work.h).
  void setClock(WorkClock *clock) { timer = clock; }
  WorkClock *clock() const { return timer; }
  /// Messages started but not waited for.
  virtual int outstanding() const = 0;
  /// Returns true if the wait for message `number` would return at once.
  virtual bool isComplete(uint64_t number) const = 0;

  /// A message as the transports see it. Internal.
  struct Message;
  virtual PendingMessage start(Message message) = 0;
  void note(const Message &message);
  virtual void finish(uint64_t number) = 0;
  /// Moves messages without waiting.
  virtual void advance() {}
  /// For tests (PARTITA_RT_CHANNELS=delays:SEED): starts and waits sleep first, for up to 2 ms.
  void setDelays(uint64_t seed) { delays = seed; }
  void delay();

  /// Messages begun by sendLater, not yet awaited.
  std::vector<PendingMessage> later;

protected:
  ChannelEnd(const char *name, bool sends) : channelName(name), isSender(sends) {}
  const char *channelName;
  bool isSender;
  MessageCount counted;
  int64_t toOtherNodes = 0;
  uint64_t seen = 0;
  WorkClock *timer = nullptr;
  uint64_t delays = 0; ///< state of the generator; 0: none
};

} // namespace partita_rt

#endif // PARTITA_RT_CHANNEL_H
