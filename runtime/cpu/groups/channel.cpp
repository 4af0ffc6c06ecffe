// Numbers messages and waits for them (channel.h).

#include "cpu/groups/channel.h"

#include <algorithm>
#include <numeric>

namespace partita_rt {

PendingMessage OrderedEnd::start(Message message) {
  uint64_t number = ++started;
  if (number > kRing)
    awaitMessage(number - kRing);
  if (!message.signature.isMark) {
    ++counted.messages;
    counted.bytes += message.signature.bytes;
    open.push_back(number);
  }
  waits.flight().note(Flight::Message, int64_t(number), message.signature.bytes, name(), " ",
                      message.signature.why);
  message.signature.number = number;
  message.signature.messages = counted.messages;
  signatures[number % kRing] = message.signature;
  post(std::move(message));
  return {this, number};
}

void OrderedEnd::finish(uint64_t number) {
  auto entry = std::find(open.begin(), open.end(), number);
  if (signatures[number % kRing].isMark && signatures[number % kRing].number == number)
    return awaitMessage(number);
  if (entry == open.end())
    fail("message #%llu over channel %s is waited for twice", (unsigned long long)number, name());
  open.erase(entry);
  awaitMessage(number);
  waits.flight().note(Flight::Arrived, int64_t(number), 0, name());
}

void OrderedEnd::awaitMessage(uint64_t number) {
  auto describe = [&] {
    const MessageSignature &signature = signatures[number % kRing];
    if (signature.isMark)
      return std::string(signature.why) + " for " + endpoint.peerText + " over channel " +
             endpoint.name;
    return (endpoint.sends ? "send " : "receive ") + signature.text() + " over channel " +
           endpoint.name + (endpoint.sends ? " to " : " from ") + endpoint.peerText;
  };
  waitUntil(
      [&] {
        waits.moveMessages();
        return isComplete(number);
      },
      failure, describe, &waits, [&] { return endpoint.peer; });
}

void RankChannels::take(Rank &rank,
                        const std::function<std::unique_ptr<ChannelEnd>(ChannelEndpoint)> &make) {
  ChannelTests tests = channelTests();
  byRow.resize(size_t(rank.program->channels.size()));
  for (ChannelEndpoint &endpoint : channelsOf(rank)) {
    int row = endpoint.row;
    ends.push_back(make(std::move(endpoint)));
    ends.back()->setDelays(delaysOf(tests, rank.rank, row));
    byRow[size_t(row)] = ends.back().get();
  }
  rank.channels = byRow.data();
  rank.waits = waits.get();
  rank.position = &waits->position();
  rank.flight = &waits->flight();
  auto join = [&](Communicator *group, std::vector<int> ranks) {
    if (auto *ordered = dynamic_cast<OrderedGroup *>(group))
      ordered->setWaits(waits.get(), std::move(ranks));
  };
  for (Membership &membership : membershipsOf(rank))
    join(rank.groups[membership.row], std::move(membership.ranks));
  std::vector<int> all(static_cast<size_t>(rank.ranks));
  std::iota(all.begin(), all.end(), 0);
  join(rank.world, std::move(all));
}

} // namespace partita_rt
