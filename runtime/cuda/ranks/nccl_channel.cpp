// Messages as NCCL calls (nccl_channel.h).

#include "cuda/ranks/nccl_channel.h"
#include "cuda/ranks/nccl_check.h"

namespace partita_rt::cuda {

PendingMessage NcclChannel::start(Message message) {
  MessageSignature &signature = message.signature;
  counted.bytes += signature.bytes;
  signature.number = signature.messages = ++counted.messages;
  MessageSignature alike = signature; // the two ends may name the same value differently
  alike.why[0] = 0;
  std::string text = (isSender ? "send " : "receive ") + signature.text();
  return {this,
          begin(text, alike.text() + std::to_string(signature.sizes), [&] { issue(message); })};
}

/// Sends and receives bytes, which NCCL does not interpret.
void NcclChannel::issue(const Message &message) {
  const char *why = message.signature.why;
  checkNccl(ncclGroupStart(), comm, why);
  ncclResult_t result = ncclSuccess;
  for (const Message::Buffer &buffer : message.buffers)
    if (size_t bytes = size_t(buffer.bytes); bytes > 0 && result == ncclSuccess)
      result = isSender ? ncclSend(buffer.data, bytes, ncclUint8, 1, comm, stream)
                        : ncclRecv(buffer.data, bytes, ncclUint8, 0, comm, stream);
  ncclResult_t ended = ncclGroupEnd();
  checkNccl(result, comm, why);
  checkNccl(ended, comm, why);
}

} // namespace partita_rt::cuda
