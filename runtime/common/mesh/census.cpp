// Compares issued collectives with announced ones (census.h).

#include "common/mesh/census.h"

#include "common/grouped.h"
#include "common/mesh/gathered.h"
#include "common/mesh/mesh.h"
#include "partita_rt/printable.h"

#include <algorithm>

namespace partita_rt {

Issued::Issued(const Rank &rank)
    : messages(size_t(rank.program->channels.size())), transfers(transferred(rank)) {
  for (size_t row = 0; rank.channels && row < messages.size(); ++row)
    if (rank.channels[row]) {
      messages[row] = rank.channels[row]->count();
      sent.messages += rank.channels[row]->sentToOtherNodes();
    }
  const Table<Group> &rows = rank.program->groups;
  for (int64_t row = 0; row < rows.size(); ++row) {
    auto named = std::find_if(groups.begin(), groups.end(),
                              [&](const auto &each) { return each.first == rows[row].name; });
    if (named == groups.end())
      named = groups.insert(groups.end(), {rows[row].name, {}});
    const Communicator *group = rank.groups[row];
    sent.collectives += group ? group->sentToOtherNodes() : 0;
    for (int kind = 0; group && kind < kCollectiveKinds; ++kind) {
      named->second.ranks = group->size();
      named->second.counts[kind].calls += group->count(CollectiveKind(kind)).calls;
      named->second.counts[kind].bytes += group->count(CollectiveKind(kind)).bytes;
    }
  }
}

Issued Issued::since(const Issued &before) const {
  Issued more = *this;
  for (size_t i = 0; i < groups.size(); ++i)
    for (int kind = 0; kind < kCollectiveKinds; ++kind) {
      more.groups[i].second.counts[kind].calls -= before.groups[i].second.counts[kind].calls;
      more.groups[i].second.counts[kind].bytes -= before.groups[i].second.counts[kind].bytes;
    }
  for (size_t row = 0; row < messages.size(); ++row) {
    more.messages[row].messages -= before.messages[row].messages;
    more.messages[row].bytes -= before.messages[row].bytes;
  }
  more.transfers.toHost -= before.transfers.toHost;
  more.transfers.toDevice -= before.transfers.toDevice;
  more.sent.collectives -= before.sent.collectives;
  more.sent.messages -= before.sent.messages;
  return more;
}

Steps stepsLike(const Stage &stage, int64_t step) {
  for (const CensusEntry &entry : stage.census) // one program has one optimizer
    if (const ExactSteps &exact = entry.steps.exact; entry.steps.part != Steps::All)
      return {exact.contains(step) ? Steps::Exact : Steps::Others, exact};
  return {};
}

int64_t endOfPhase(const Stage &stage, int64_t step) {
  auto [part, exact] = stepsLike(stage, step);
  if (part == Steps::All || step > exact.until)
    return INT64_MAX;
  return exact.doubling ? step : exact.until; // with doubling, steps alternate
}

void checkCensus(const Rank &rank, const Issued &step, int64_t number) {
  const Program &program = *rank.program;
  const Table<CensusEntry> &census = rank.stage->census;
  if (census.empty())
    return;
  auto [part, exact] = stepsLike(*rank.stage, number);
  std::string which = exact.doubling          ? " like step " + std::to_string(number)
                      : part == Steps::Others ? " after step " + std::to_string(exact.until)
                                              : "";
  for (const auto &[name, group] : step.groups)
    for (int kind = 0; kind < kCollectiveKinds && group.ranks != 1; ++kind) {
      CollectiveCount announced;
      for (const CensusEntry &entry : census)
        if (int(entry.kind) == kind && entry.group == name && entry.steps.contains(number)) {
          announced.calls += entry.calls;
          announced.bytes += entry.bytes;
        }
      const CollectiveCount &issued = group.counts[kind];
      if (issued.calls != announced.calls || issued.bytes != announced.bytes)
        fail(
            "the first step%s%s issued %lld %s of %lld bytes over %s, the census announces %lld of "
            "%lld bytes",
            ofStage(program, rank.stageNumber).c_str(), which.c_str(), (long long)issued.calls,
            nameOf(CollectiveKind(kind)), (long long)issued.bytes, name.c_str(),
            (long long)announced.calls, (long long)announced.bytes);
    }
}

MessageCount announcedMessages(const Stage &stage, int channel) {
  MessageCount announced;
  for (const MessageEntry &entry : stage.messages)
    if (entry.channel == channel) {
      announced.messages += entry.messages;
      announced.bytes += entry.bytes;
    }
  return announced;
}

void checkMessages(const Rank &rank, const Issued &step) {
  const Program &program = *rank.program;
  if (rank.stage->census.empty() && rank.stage->messages.empty())
    return;
  for (int row = 0; row < int(step.messages.size()); ++row) {
    const MessageCount &issued = step.messages[size_t(row)];
    MessageCount announced = announcedMessages(*rank.stage, row);
    if (issued.messages != announced.messages || issued.bytes != announced.bytes)
      fail("the first step%s %s %lld messages of %lld bytes over channel %s, the census announces "
           "%lld of %lld bytes",
           ofStage(program, rank.stageNumber).c_str(),
           program.channels[row].from == rank.stageNumber ? "sent" : "received",
           (long long)issued.messages, (long long)issued.bytes, program.channels[row].name,
           (long long)announced.messages, (long long)announced.bytes);
  }
}

void compareEnds(Rank &rank) {
  const Program &program = *rank.program;
  int64_t rows = program.channels.size();
  if (rows == 0)
    return;
  std::vector<int64_t> mine(static_cast<size_t>(rows));
  for (int64_t row = 0; row < rows; ++row)
    mine[size_t(row)] = rank.channels[row] ? int64_t(rank.channels[row]->history()) : 0;
  std::vector<int64_t> all = gathered(rank, mine, "what channels have moved");
  for (const ChannelEndpoint &endpoint : channelsOf(rank))
    if (all[size_t(endpoint.peer * rows + endpoint.row)] != mine[size_t(endpoint.row)])
      fail("messages over channel %s differ: what %s and %s have started in step %lld is not the "
           "same in type, sizes, micro-batches or order",
           endpoint.name, endpoint.selfText.c_str(), endpoint.peerText.c_str(),
           (long long)rank.step);
}

void checkTransfers(const Rank &rank, const TransferBytes &step) {
  const TransferBytes &announced = rank.stage->transfers;
  if (step.toHost != announced.toHost || step.toDevice != announced.toDevice)
    fail("the first step%s copied %lld bytes to the host and %lld to the device, the program "
         "announces %lld and %lld",
         ofStage(*rank.program, rank.stageNumber).c_str(), (long long)step.toHost,
         (long long)step.toDevice, (long long)announced.toHost, (long long)announced.toDevice);
}

void checkNothingUnderWay(const Rank &rank) {
  if (int64_t n = transfersUnderWay(rank))
    fail("%lld copies between device and host were started and not waited for in step %lld",
         (long long)n, (long long)rank.step);
  rank.forGroups([&](const Communicator &group) {
    if (int n = group.outstanding())
      fail("%d collectives over %s were started and not waited for in step %lld", n, group.axis(),
           (long long)rank.step);
  });
  rank.forChannels([&](const ChannelEnd &end) {
    if (int n = end.outstanding())
      fail("%d message%s over channel %s %s started and not waited for in step %lld", n,
           n == 1 ? "" : "s", end.name(), n == 1 ? "was" : "were", (long long)rank.step);
  });
}

std::string censusText(const Program &program) {
  std::string text;
  for (int number = 0; number < int(program.stages.size()); ++number) {
    const Table<CensusEntry> &census = program.stages[number].census;
    text += "collectives of one train_step, per rank" + ofStage(program, number) + ":\n";
    for (const CensusEntry &entry : census)
      text += "  " + grouped(entry.calls) + " " + nameOf(entry.kind) + " over " + entry.group +
              ", " + grouped(entry.bytes) + " bytes" + entry.steps.text() + ": " +
              printable(entry.why) + "\n";
    if (census.empty())
      text += "  none\n";
    const Table<MessageEntry> &messages = program.stages[number].messages;
    if (!messages.empty())
      text += "messages of one train_step, per rank" + ofStage(program, number) + ":\n";
    for (const MessageEntry &entry : messages) {
      const Channel &channel = program.channels[entry.channel];
      bool sends = channel.from == number;
      text += "  " + grouped(entry.messages) + (sends ? " sent to" : " received from") + " stage " +
              std::to_string(sends ? channel.to : channel.from) + " over " + channel.name + ", " +
              grouped(entry.bytes) + " bytes: " + printable(entry.why) + "\n";
    }
  }
  return text;
}

} // namespace partita_rt
