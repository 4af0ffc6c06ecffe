// Messages: entry points of channel.h, and signatures.

#include "common/mesh/message.h"
#include "common/target.h"
#include "partita_rt/fingerprint.h"
#include "partita_rt/work.h"

#include <cstdlib>
#include <cstring>
#include <ctime>

namespace partita_rt {

std::string MessageSignature::text() const {
  std::string text = "#" + std::to_string(messages) + " (" + nameOf(DType(dtype)) + ", " +
                     std::to_string(bytes) + " bytes in " + std::to_string(buffers) +
                     (buffers == 1 ? " buffer" : " buffers");
  if (microBatch >= 0)
    text += ", micro-batch " + std::to_string(microBatch);
  return text + ") for " + why;
}

std::string mismatchText(const ChannelEndpoint &endpoint, const MessageSignature &mine,
                         const MessageSignature &theirs) {
  auto of = [&](const std::string &who, bool sends, const MessageSignature &signature) {
    if (signature.isMark)
      return who + " is at " + signature.why + " after " + std::to_string(signature.messages) +
             (signature.messages == 1 ? " message" : " messages");
    return who + (sends ? " sends " : " receives ") + signature.text();
  };
  std::string self = of(endpoint.selfText, endpoint.sends, mine);
  std::string peer = of(endpoint.peerText, !endpoint.sends, theirs);
  MessageSignature alike = theirs;
  alike.sizes = mine.sizes;
  return std::string("messages over channel ") + endpoint.name +
         " differ: " + (endpoint.sends ? self + ", " + peer : peer + ", " + self) +
         (mine.matches(alike) ? ", in buffers of other sizes" : "");
}

namespace {

/// Returns the rank's end of the channel; throws Error if it is not the sending (or receiving) end.
ChannelEnd &endOf(const Rank &rank, int channel, bool sends, const char *why) {
  const Program &program = *rank.program;
  const char *verb = sends ? "send" : "receive";
  if (channel < 0 || channel >= program.channels.size())
    fail("%s for %s: the program has no channel %d, only %lld", verb, why, channel,
         (long long)program.channels.size());
  ChannelEnd *end = rank.channels[channel];
  const Channel &row = program.channels[channel];
  if (!end || end->sends() != sends)
    fail("%s for %s: channel %s leads from stage %d to stage %d, the rank is of stage %d", verb,
         why, row.name, row.from, row.to, rank.stageNumber);
  return *end;
}

PendingMessage startMessage(ChannelEnd &end, Bucket buffers, const char *why, int64_t microBatch) {
  WorkScope scope(end.clock(), Work::Collectives);
  end.delay();
  ChannelEnd::Message message;
  MessageSignature &signature = message.signature;
  std::vector<int64_t> sizes;
  for (const Buffer &buffer : buffers) {
    if (buffer.dtype != buffers.begin()->dtype)
      fail("a message over channel %s for %s: all its tensors have one type, found %s and %s",
           end.name(), why, nameOf(buffers.begin()->dtype), nameOf(buffer.dtype));
    if (buffer.count < 0)
      fail("a message over channel %s for %s: a tensor has %lld elements", end.name(), why,
           (long long)buffer.count);
    int64_t bytes = buffer.count * sizeOf(buffer.dtype);
    message.buffers.push_back({static_cast<char *>(buffer.data), bytes});
    sizes.push_back(bytes);
    signature.bytes += bytes;
    signature.dtype = uint8_t(buffer.dtype);
  }
  signature.buffers = int64_t(sizes.size());
  int64_t length = signature.buffers * int64_t(sizeof(int64_t));
  signature.sizes =
      fingerprint(reinterpret_cast<const unsigned char *>(sizes.data()), length, length);
  signature.microBatch = microBatch;
  std::strncpy(signature.why, why, sizeof(signature.why) - 1);
  end.note(message);
  return end.start(std::move(message));
}

} // namespace

void ChannelEnd::note(const Message &message) {
  const MessageSignature &signature = message.signature;
  uint64_t words[] = {seen, uint64_t(signature.bytes), signature.sizes,
                      uint64_t(signature.microBatch), signature.dtype};
  seen = fingerprint(reinterpret_cast<const unsigned char *>(words), sizeof(words), sizeof(words));
}

PendingMessage sendStart(Rank &rank, int channel, Bucket buffers, const char *why,
                         int64_t microBatch) {
  return startMessage(endOf(rank, channel, true, why), buffers, why, microBatch);
}

PendingMessage receiveStart(Rank &rank, int channel, Bucket buffers, const char *why,
                            int64_t microBatch) {
  return startMessage(endOf(rank, channel, false, why), buffers, why, microBatch);
}

PendingMessage markEnd(ChannelEnd &end, const char *why) {
  ChannelEnd::Message message;
  message.signature.isMark = 1;
  std::strncpy(message.signature.why, why, sizeof(message.signature.why) - 1);
  return end.start(std::move(message));
}

void wait(PendingMessage message) {
  if (!message.end)
    return;
  WorkScope scope(message.end->clock(), Work::Collectives);
  message.end->delay();
  message.end->finish(message.number);
}

void sendLater(Rank &rank, int channel, Bucket buffers, const char *why, int64_t microBatch) {
  PendingMessage message = sendStart(rank, channel, buffers, why, microBatch);
  message.end->later.push_back(message);
}

void awaitSent(Rank &rank, int channel) {
  std::vector<PendingMessage> messages;
  messages.swap(endOf(rank, channel, true, "what was sent").later);
  for (const PendingMessage &message : messages)
    wait(message);
}

void pollMessages(Rank &rank) {
  rank.forChannels([](ChannelEnd &end) { end.advance(); });
}

void beginSlot(Rank &rank, int64_t number, int64_t microBatch, const char *what) {
  rank.slot = {number, microBatch, what};
  noteSlot(rank);
}

void beginPass(Rank &rank, std::initializer_list<Ring> rings, int64_t microBatch,
               const char *what) {
  rank.inFlightBases.clear();
  for (const Ring &ring : rings) {
    int64_t offset = ring.offset + microBatch % ring.blocks * ring.bytes;
    rank.inFlightBases.push_back(ring.home == Home::Host ? rank.pinned<char>(offset)
                                                         : rank.at<char>(offset));
  }
  beginSlot(rank, rank.slot.number + 1, microBatch, what);
}

void beginLayer(Rank &rank, int64_t layer) {
  rank.slot.layer = int32_t(layer);
  noteLayer(rank);
}

void endSlots(Rank &rank) {
  bool hasSlot = rank.slot.number >= 0, hasLayer = rank.slot.layer != Slot::kNoLayer;
  rank.slot = {};
  if (hasSlot)
    noteSlot(rank);
  else if (hasLayer)
    noteLayer(rank);
}

//===-- Tests -------------------------------------------------------------------------------===//

/// Advances the state of splitmix64 and returns its number.
static uint64_t nextRandom(uint64_t &state) {
  uint64_t x = state += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

void ChannelEnd::delay() {
  if (delays == 0)
    return;
  uint64_t random = nextRandom(delays);
  if (random % 2)
    return;
  timespec pause{0, long(random / 2 % 2'000'000)};
  nanosleep(&pause, nullptr);
}

ChannelTests channelTests() {
  ChannelTests tests;
  const char *text = std::getenv("PARTITA_RT_CHANNELS");
  for (std::string rest = text ? text : ""; !rest.empty();) {
    size_t comma = rest.find(',');
    std::string word = rest.substr(0, comma);
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
    char *end = nullptr;
    if (word == "rendezvous") {
      tests.rendezvous = true;
      continue;
    }
    if (word.compare(0, 7, "delays:") == 0)
      tests.delays = std::strtoull(word.c_str() + 7, &end, 10);
    if (!end || *end || tests.delays == 0)
      fail(
          "PARTITA_RT_CHANNELS=%.40s: known are 'rendezvous' and 'delays:SEED' with a seed from 1, "
          "separated by a comma",
          text);
  }
  return tests;
}

uint64_t delaysOf(const ChannelTests &tests, int rank, int row) {
  if (tests.delays == 0)
    return 0;
  uint64_t state = tests.delays + uint64_t(rank) * kMaxChannels + uint64_t(row);
  return nextRandom(state) | 1;
}

} // namespace partita_rt
