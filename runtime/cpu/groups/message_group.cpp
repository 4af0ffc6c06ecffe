// Collectives over messages (message_group.h). Messages of one tag between two ranks arrive in the
// order in which they were sent, which is that of the segments on all ranks. A segment is sent when
// all ranks have started its collective, and at most kStagingSlots of them are pending: so little may
// arrive before its receive starts.

#include "cpu/groups/message_group.h"

namespace partita_rt {

namespace {
constexpr int kDataTag = 2, kResultTag = 3; ///< besides that of announcements
} // namespace

//===-- Agreement ---------------------------------------------------------------------------===//

std::set<int> MessageGroup::othersOf(int rank, int size) {
  std::set<int> others;
  for (int r = 0; r < size; ++r)
    if (r != rank)
      others.insert(r);
  return others;
}

std::set<int> MessageGroup::awaitedRanks() const {
  std::set<int> missing;
  if (!isAnnounced())
    announcements.addPeers(completed + 1, missing);
  for (uint64_t i = 0; isAnnounced() && i < kStagingSlots && missing.empty(); ++i)
    stagingSlots[(oldestSegment() + i) % kStagingSlots].messages->addPeers(missing);
  return missing;
}

int MessageGroup::awaitedRank() const {
  std::set<int> missing = awaitedRanks();
  return missing.empty() ? -1 : *missing.begin();
}

std::string MessageGroup::awaited() const {
  std::set<int> missing = awaitedRanks();
  std::string text = signature(completed + 1).text();
  if (missing.empty())
    return text + " of axis " + axisName;
  std::string ranks;
  for (int rank : missing)
    ranks += (ranks.empty() ? "" : ", ") + memberText(rank);
  const char *why = isAnnounced()         ? ", data are on their way"
                    : missing.size() == 1 ? ", which has not started it"
                                          : ", which have not started it";
  return text + " for " + ranks + why;
}

//===-- Segments ----------------------------------------------------------------------------===//

int64_t MessageGroup::segmentElements(const Request &request) const {
  return messageSegment(request.kind, sizeOf(request.dtype), groupSize);
}

Range MessageGroup::shareOfRank(const Segment &segment, int c) const {
  const CollectiveRow &row = rowOf(segment.request.kind);
  if (row.from == Extent::Full)
    return {c * segment.count, (c + 1) * segment.count};
  if (!row.inPlace)
    return {0, segment.count};
  return shareOf(segment.count, c, groupSize);
}

void MessageGroup::fill(const Segment &segment) {
  const Request &request = segment.request;
  StagingSlot &staged = slotOf(segment);
  if (request.kind == CollectiveKind::Barrier) // the signatures were already the barrier
    return;
  const CollectiveRow &row = rowOf(request.kind);
  int64_t bytes = segment.count * segment.width;
  int blocks = row.from == Extent::Full ? groupSize : 1;
  bool isRoots = row.inPlace && !row.reduces;
  staged.outgoing.resize(size_t(bytes * blocks));
  if (!isRoots || groupRank == request.root)
    for (int c = 0; c < blocks; ++c)
      pack(staged.outgoing.data() + c * bytes, segment, segment.begin, segment.count, c);
  if (isRoots)
    sendRoots(staged, bytes, request.root);
  else if (isShift(row))
    shiftShards(staged, bytes, request.back);
  else
    exchangeShares(segment, staged);
  worked += int64_t(staged.outgoing.size());
}

void MessageGroup::send(StagingSlot &staged, const char *data, int64_t bytes, int to, int tag,
                        Sending how) {
  if (nodes[size_t(to)] != nodes[size_t(groupRank)])
    toOtherNodes += bytes;
  staged.messages->send(data, bytes, to, tag, how);
}

/// Sends the root's values to all others.
void MessageGroup::sendRoots(StagingSlot &staged, int64_t bytes, int root) {
  if (groupRank != root)
    return staged.messages->receive(staged.outgoing.data(), bytes, root, kDataTag);
  for (int r = 0; r < groupSize; ++r)
    if (r != root)
      send(staged, staged.outgoing.data(), bytes, r, kDataTag, Sending::Eager);
}

/// Sends this rank's shards to one neighbour, and receives those of the other. Of the others, only these two are
/// waited for: Bulk keeps a rank from running further ahead.
void MessageGroup::shiftShards(StagingSlot &staged, int64_t bytes, bool back) {
  staged.incoming.resize(size_t(bytes));
  staged.messages->receive(staged.incoming.data(), bytes,
                           int(shiftSource(groupRank, groupSize, back)), kDataTag);
  send(staged, staged.outgoing.data(), bytes, int(shiftTarget(groupRank, groupSize, back)),
       kDataTag, Sending::Bulk);
}

/// Sends every rank's values of share c to rank c.
void MessageGroup::exchangeShares(const Segment &segment, StagingSlot &staged) {
  Range mine = shareOfRank(segment, groupRank);
  int64_t bytes = (mine.end - mine.begin) * segment.width;
  staged.incoming.resize(size_t(bytes * groupSize));
  for (int r = 0; r < groupSize; ++r) {
    if (r == groupRank)
      continue;
    Range part = shareOfRank(segment, r);
    staged.messages->receive(staged.incoming.data() + r * bytes, bytes, r, kDataTag);
    send(staged, staged.outgoing.data() + part.begin * segment.width,
         (part.end - part.begin) * segment.width, r, kDataTag, Sending::Eager);
  }
}

/// Sums this rank's share, over its own values in `outgoing`.
void MessageGroup::sumShare(const Segment &segment, StagingSlot &staged) {
  Range mine = shareOfRank(segment, groupRank);
  char *sum = staged.outgoing.data() + mine.begin * segment.width;
  int64_t bytes = (mine.end - mine.begin) * segment.width;
  std::vector<const char *> sources(static_cast<size_t>(groupSize));
  for (int r = 0; r < groupSize; ++r)
    sources[size_t(r)] = r == groupRank ? sum : staged.incoming.data() + r * bytes;
  reduceTo(sum, sources.data(), segment, mine.end - mine.begin);
}

void MessageGroup::reduce(const Segment &segment) {
  const Request &request = segment.request;
  StagingSlot &staged = slotOf(segment);
  if (request.kind == CollectiveKind::Barrier)
    return;
  const CollectiveRow &row = rowOf(request.kind);
  int64_t bytes = segment.count * segment.width;
  const char *own = staged.outgoing.data() + (row.from == Extent::Full ? groupRank * bytes : 0);
  if (row.reduces)
    sumShare(segment, staged);
  if (row.inPlace && row.reduces) {
    exchangeSums(segment, staged);
  } else if (row.inPlace) {
    if (groupRank != request.root)
      unpack(staged.outgoing.data(), segment, segment.begin, segment.count);
    worked += bytes;
  } else if (row.reduces) {
    unpack(own, segment, segment.begin, segment.count);
  } else if (isShift(row)) {
    unpack(staged.incoming.data(), segment, segment.begin, segment.count);
    worked += bytes;
  } else {
    for (int r = 0; r < groupSize; ++r)
      unpack(r == groupRank ? own : staged.incoming.data() + r * bytes, segment, segment.begin,
             segment.count, r);
    worked += bytes * groupSize;
  }
}

/// Sends this rank's share of the sums to all others, and receives theirs.
void MessageGroup::exchangeSums(const Segment &segment, StagingSlot &staged) {
  Range mine = shareOfRank(segment, groupRank);
  for (int r = 0; r < groupSize; ++r) {
    if (r == groupRank)
      continue;
    Range part = shareOfRank(segment, r);
    staged.messages->receive(staged.outgoing.data() + part.begin * segment.width,
                             (part.end - part.begin) * segment.width, r, kResultTag);
    send(staged, staged.outgoing.data() + mine.begin * segment.width,
         (mine.end - mine.begin) * segment.width, r, kResultTag, Sending::Eager);
  }
}

void MessageGroup::read(const Segment &segment) {
  unpack(slotOf(segment).outgoing.data(), segment, segment.begin, segment.count);
  worked += segment.count * segment.width;
}

} // namespace partita_rt
