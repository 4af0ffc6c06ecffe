// Messages between processes (messenger.h), also within a node. A signature goes ahead, and the
// receiver asks for the data if it agrees: nothing is written beyond a buffer of another size.
// Messages move in starts, polls and waits.

#ifndef PARTITA_RT_CPU_GROUPS_MESSAGE_CHANNEL_H
#define PARTITA_RT_CPU_GROUPS_MESSAGE_CHANNEL_H

#include "cpu/groups/channel.h"
#include "cpu/groups/messenger.h"

#include <deque>

namespace partita_rt {

class MessageChannel final : public OrderedEnd {
public:
  /// `messenger`'s members are the ranks of the program, and only channels use it. `synchronous`: a
  /// send completes only when its receive has started. `leavesNode`: is the other end on another node?
  MessageChannel(ChannelEndpoint endpoint, RankWaits &waits, Messenger &messenger, bool synchronous,
                 bool leavesNode)
      : OrderedEnd(std::move(endpoint), waits, nullptr), messenger(messenger),
        synchronous(synchronous), leavesNode(leavesNode) {}

  /// Compares numbers: a message can move only if those before it can.
  bool isComplete(uint64_t number) const override { return number <= completed; }
  void advance() override;

private:
  struct UnderWay {
    Message message;
    MessageSignature theirs; ///< of a received message
    std::unique_ptr<Exchange> exchange;
    bool agreed = false; ///< the data are in transit too
    bool done = false;
  };
  void post(Message message) override;
  void moveData(UnderWay &entry);
  int signatureTag() const { return 2 * endpoint.row; }
  int dataTag() const { return 2 * endpoint.row + 1; }

  Messenger &messenger;
  bool synchronous, leavesNode;
  std::deque<UnderWay> underWay; ///< from number completed + 1 on
  uint64_t completed = 0;
};

} // namespace partita_rt

#endif // PARTITA_RT_CPU_GROUPS_MESSAGE_CHANNEL_H
