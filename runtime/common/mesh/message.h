// A message as the transports of all targets see it, with the data that the two ends of its channel
// compare.

#ifndef PARTITA_RT_COMMON_MESH_MESSAGE_H
#define PARTITA_RT_COMMON_MESH_MESSAGE_H

#include "common/mesh/mesh.h"
#include "partita_rt/channel.h"

#include <vector>

namespace partita_rt {

/// The data that the two ends compare; plain, so that they can be sent.
struct MessageSignature {
  uint64_t number = 0;  ///< within its channel, from 1, marks included
  int64_t messages = 0; ///< started so far, including this one: its number in reports
  int64_t bytes = 0;
  int64_t buffers = 0;
  uint64_t sizes = 0; ///< a fingerprint of the buffers' sizes
  int64_t microBatch = -1;
  uint8_t dtype = 0;
  uint8_t isMark = 0; ///< a mark, not a message: the end of a step, or of the program
  char why[96] = {};

  bool matches(const MessageSignature &other) const {
    return number == other.number && bytes == other.bytes && buffers == other.buffers &&
           sizes == other.sizes && microBatch == other.microBatch && dtype == other.dtype &&
           isMark == other.isMark;
  }
  /// "#3 (float32, 4096 bytes in 1 buffer, micro-batch 2) for h.3".
  std::string text() const;
};

struct ChannelEnd::Message {
  struct Buffer {
    char *data;
    int64_t bytes;
  };
  MessageSignature signature; ///< the transport sets the number
  std::vector<Buffer> buffers;
};

/// Returns "messages over channel onward differ: rank 0 of stage 0 sends #3 (...), rank 2 of stage
/// 1 receives #3 (...)", whichever end notices.
std::string mismatchText(const ChannelEndpoint &endpoint, const MessageSignature &mine,
                         const MessageSignature &theirs);

/// Starts a mark, which both ends make after the messages of a step, or of the program, so that a
/// surplus message is noticed. Need not be waited for. `why`: "the end of a step".
PendingMessage markEnd(ChannelEnd &end, const char *why);

/// PARTITA_RT_CHANNELS, for tests: `rendezvous` and `delays:SEED`, separated by a comma.
struct ChannelTests {
  bool rendezvous = false; ///< waits for sends return only after the receive has started
  uint64_t delays = 0;     ///< a seed; 0: none
};
/// Throws Error if PARTITA_RT_CHANNELS is anything else.
ChannelTests channelTests();
/// Returns the seed of one rank's end of a row.
uint64_t delaysOf(const ChannelTests &tests, int rank, int row);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_MESH_MESSAGE_H
