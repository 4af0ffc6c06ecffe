// Messages between processes (message_channel.h). MPI's default error handler ends the job with
// MPI's own message, so return codes are not checked.

#include "cpu/message_channel.h"

#include <algorithm>

namespace partita_rt {

/// MPI counts in int.
constexpr int64_t kMostBytes = int64_t(1) << 30;

void MessageChannel::send(const void *data, int64_t bytes, int tag, UnderWay &entry) {
  entry.requests.emplace_back();
  auto begin = synchronous ? MPI_Issend : MPI_Isend;
  begin(data, int(bytes), MPI_BYTE, place.peer, tag, comm, &entry.requests.back());
}

void MessageChannel::receive(void *data, int64_t bytes, int tag, UnderWay &entry) {
  entry.requests.emplace_back();
  MPI_Irecv(data, int(bytes), MPI_BYTE, place.peer, tag, comm, &entry.requests.back());
}

void MessageChannel::post(Message message) {
  UnderWay &entry = underWay.emplace_back(); // its address must not change until it is complete
  entry.message = std::move(message);
  if (place.sends) {
    send(&entry.message.signature, sizeof(MessageSignature), signatureTag(), entry);
    moveData(entry);
  } else {
    receive(&entry.theirs, sizeof(MessageSignature), signatureTag(), entry);
  }
  advance();
}

void MessageChannel::moveData(UnderWay &entry) {
  entry.agreed = true;
  for (const Message::Buffer &buffer : entry.message.buffers)
    for (int64_t at = 0; at < buffer.bytes; at += kMostBytes) {
      int64_t bytes = std::min(kMostBytes, buffer.bytes - at);
      if (place.sends)
        send(buffer.data + at, bytes, dataTag(), entry);
      else
        receive(buffer.data + at, bytes, dataTag(), entry);
    }
}

/// Receives data in the order of their messages: messages of one tag arrive in the order in which
/// they were sent.
void MessageChannel::advance() {
  for (UnderWay &entry : underWay) {
    int done = 0;
    MPI_Testall(int(entry.requests.size()), entry.requests.data(), &done, MPI_STATUSES_IGNORE);
    if (!entry.agreed) {
      if (!done)
        break;
      if (!entry.message.signature.matches(entry.theirs))
        throw Error(mismatchText(place, entry.message.signature, entry.theirs));
      entry.requests.clear();
      moveData(entry);
    } else if (done) {
      entry.requests.clear();
    }
  }
  while (!underWay.empty() && underWay.front().agreed && underWay.front().requests.empty()) {
    underWay.pop_front();
    ++completed;
  }
}

} // namespace partita_rt
