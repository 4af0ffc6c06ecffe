// Messages between processes (message_channel.h).

#include "cpu/groups/message_channel.h"

namespace partita_rt {

void MessageChannel::post(Message message) {
  UnderWay &entry = underWay.emplace_back(); // its address must not change until it is complete
  entry.message = std::move(message);
  entry.exchange = messenger.exchange();
  if (endpoint.sends) {
    entry.exchange->send(&entry.message.signature, sizeof(MessageSignature), endpoint.peer,
                         signatureTag(), synchronous ? Sending::Synchronous : Sending::Eager);
    moveData(entry);
  } else {
    entry.exchange->receive(&entry.theirs, sizeof(MessageSignature), endpoint.peer, signatureTag());
  }
  advance();
}

void MessageChannel::moveData(UnderWay &entry) {
  entry.agreed = true;
  Sending how = synchronous ? Sending::Synchronous : Sending::Bulk;
  for (const Message::Buffer &buffer : entry.message.buffers)
    if (endpoint.sends) {
      toOtherNodes += leavesNode ? buffer.bytes : 0;
      entry.exchange->send(buffer.data, buffer.bytes, endpoint.peer, dataTag(), how);
    } else
      entry.exchange->receive(buffer.data, buffer.bytes, endpoint.peer, dataTag());
}

/// Receives data in the order of their messages: messages of one tag arrive in the order in which
/// they were sent.
void MessageChannel::advance() {
  for (UnderWay &entry : underWay) {
    if (entry.done)
      continue;
    bool done = entry.exchange->test();
    if (!entry.agreed) {
      if (!done)
        break;
      if (!entry.message.signature.matches(entry.theirs))
        throw Error(mismatchText(endpoint, entry.message.signature, entry.theirs));
      moveData(entry);
    } else {
      entry.done = done;
    }
  }
  while (!underWay.empty() && underWay.front().done) {
    underWay.pop_front();
    ++completed;
  }
}

} // namespace partita_rt
