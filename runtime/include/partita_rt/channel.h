// Point-to-point messages between the ranks of two pipeline stages, over the channels of the
// program's table (Program::channels).
//
//     awaitSent(rank, kOnward);                 // y of the last micro-batch is sent
//     receive(rank, kActivations, {{x, 8 * 384}}, "layer 3", micro);
//     ...                                       // x holds what the previous stage has sent
//     sendLater(rank, kOnward, {{y, 8 * 384}}, "layer 6", micro);
//
// is a pass of a micro-batch as emitted; receiveStart and sendStart with wait are what these consist of.
//
// Contract: both ends of a channel start the same messages in the same order, with equal types,
// counts and micro-batches. Each message has a number within its channel; a mismatch is an error
// that says where each end is, before data are touched. (NCCL compares nothing: cuda/README.md says
// when a mismatch shows.) If an end waits for a message that the other one never starts, it fails
// when that one's function returns or, if that one waits as well, after PARTITA_RT_TIMEOUT, with who
// waits for whom. A buffer belongs to the message from start to wait. Waits may come in any order; a
// message that is started and never waited for is an error at the end of the step. With more than 64
// pending messages at one end, a start waits for the oldest. In a CUDA program starts and waits order
// streams, as those of collectives do (cuda/comm.h), and the host waits for neither.
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

/// Begins to send the buffers `pieces`, all of one type, over channel number `channel`, whose `from`
/// is the rank's stage. `why` names the message's layer or value in reports, and must outlive the call
/// (a literal); `microBatch`: -1 if it belongs to none. Throws Error if the rank
/// is not at this end of the channel, or the other end has started another message.
PendingMessage sendStart(Rank &rank, int channel, Bucket pieces, const char *why,
                         int64_t microBatch = -1);
/// Begins to receive, at the other end.
PendingMessage receiveStart(Rank &rank, int channel, Bucket pieces, const char *why,
                            int64_t microBatch = -1);
/// Returns when the buffers are the rank's again: sent, or received.
void wait(PendingMessage message);

/// Start and wait.
inline void send(Rank &rank, int channel, Bucket pieces, const char *why, int64_t microBatch = -1) {
  wait(sendStart(rank, channel, pieces, why, microBatch));
}
inline void receive(Rank &rank, int channel, Bucket pieces, const char *why,
                    int64_t microBatch = -1) {
  wait(receiveStart(rank, channel, pieces, why, microBatch));
}

/// Moves the rank's messages as far as possible without waiting, as starts, waits and polls of groups
/// (`poll(rank, rows, bytes)`) also do.
void pollMessages(Rank &rank);

/// The rank begins a slot of its stage's schedule. Reports of failures and time-outs name it. `what` is
/// a literal: "forward of h.2".
void beginSlot(Rank &rank, int64_t number, int64_t microBatch, const char *what);

/// Where a stage keeps the values that later passes of its micro-batches in flight need: equal,
/// contiguous blocks in the arena or, for offloaded activations, in pinned host memory. There is a ring
/// for each span from the pass that saves values to the last one that reads them.
struct Ring {
  int64_t blocks, bytes, offset;
  Home home = Home::Device;
};

/// The rank begins a pass of a micro-batch, the next slot of its stage's schedule: Rank::inFlight() is
/// in the micro-batch's blocks of these rings from here on. `what` is a literal: "forward".
void beginPass(Rank &rank, std::initializer_list<Ring> rings, int64_t microBatch, const char *what);

/// Like sendStart, but awaitSent waits.
void sendLater(Rank &rank, int channel, Bucket pieces, const char *why, int64_t microBatch);
/// Waits until everything that sendLater has begun to send over the channel is sent.
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
  /// A fingerprint of all messages started so far, which must be equal at both ends.
  uint64_t history() const { return seen; }
  /// The clock that counts the time spent here as collectives, or null (work.h).
  void setClock(WorkClock *clock) { timer = clock; }
  WorkClock *clock() const { return timer; }
  /// Messages started but not waited for.
  virtual int outstanding() const = 0;
  /// Would the wait for message `number` return at once?
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
  uint64_t seen = 0;
  WorkClock *timer = nullptr;
  uint64_t delays = 0; ///< state of the generator; 0: none
};

} // namespace partita_rt

#endif // PARTITA_RT_CHANNEL_H
