// Collectives by messages (message_group.h). MPI's default error handler ends the job with MPI's
// own message, so return codes are not checked here.

#include "cpu/message_group.h"

namespace partita_rt {

namespace {
constexpr int kSignatureTag = 1, kDataTag = 2, kResultTag = 3;
constexpr int64_t kSegmentBytes = 8 << 20; ///< per destination: bounds the staging memory
} // namespace

void MessageGroup::execute(uint64_t number) {
  agree(number);
  const Request &mine = request(number);
  int64_t elements = mine.elements();
  int64_t step = kSegmentBytes / sizeOf(mine.dtype);
  if (mine.kind == CollectiveKind::AllReduce)
    step *= groupSize;
  for (int64_t begin = 0; begin < elements; begin += step) {
    int64_t count = std::min(step, elements - begin);
    switch (mine.kind) {
    case CollectiveKind::AllReduce:
    case CollectiveKind::ReduceScatter:
      reduceSegment(mine, begin, count);
      break;
    case CollectiveKind::AllGather:
      allGather(mine, begin, count);
      break;
    case CollectiveKind::Broadcast:
      broadcastSegment(mine, begin, count);
      break;
    case CollectiveKind::Barrier:
      break;
    }
  }
}

void MessageGroup::publish(uint64_t number) {
  std::vector<MPI_Request> &requests = announcements[number % kRing];
  for (int r = 0; r < groupSize; ++r)
    if (r != groupRank) {
      requests.emplace_back();
      MPI_Isend(&signature(number), sizeof(Signature), MPI_BYTE, r, kSignatureTag, comm,
                &requests.back());
    }
}

/// Receives every rank's signature; this is also the barrier.
void MessageGroup::agree(uint64_t number) {
  const Signature &mine = signature(number);
  std::vector<Signature> others(static_cast<size_t>(groupSize));
  std::vector<MPI_Request> requests = std::move(announcements[number % kRing]);
  announcements[number % kRing].clear();
  for (int r = 0; r < groupSize; ++r)
    if (r != groupRank) {
      requests.emplace_back();
      MPI_Irecv(&others[size_t(r)], sizeof(Signature), MPI_BYTE, r, kSignatureTag, comm,
                &requests.back());
    }
  int done = 0;
  waitUntil(
      [&] {
        MPI_Testall(int(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE);
        return done != 0;
      },
      nullptr, [&] { return mine.text() + " of axis " + axisName; });
  for (int r = 0; r < groupSize; ++r)
    if (r != groupRank && !others[size_t(r)].matches(mine)) {
      int low = std::min(r, groupRank), high = std::max(r, groupRank);
      throw Error(mismatchText(axisName, high, high == r ? others[size_t(r)] : mine, low,
                               low == r ? others[size_t(r)] : mine));
    }
}

/// all_reduce: rank c sums share c of the segment and sends it to all. reduce_scatter: the same
/// where share c is the segment of block c, and the sum stays.
void MessageGroup::reduceSegment(const Request &request, int64_t begin, int64_t count) {
  bool scatter = request.kind == CollectiveKind::ReduceScatter;
  int64_t width = sizeOf(request.dtype);
  auto share = [&](int c) { return scatter ? Range{0, count} : shareOf(count, c, groupSize); };
  auto blockOffset = [&](const Item &item, int c) { return scatter ? c * item.count : 0; };

  Range mine = share(groupRank);
  int64_t mineBytes = (mine.end - mine.begin) * width;
  outgoing.resize(size_t((scatter ? count * groupSize : count) * width));
  incoming.resize(size_t(mineBytes * groupSize));
  std::vector<MPI_Request> requests;
  int64_t position = 0, own = 0;
  for (int c = 0; c < groupSize; ++c) {
    Range part = share(c);
    char *out = outgoing.data() + position;
    forItems(request.items, begin + part.begin, part.end - part.begin,
             [&](const Item &item, int64_t offset, int64_t at, int64_t n) {
               std::memcpy(out + at * width, item.from + (blockOffset(item, c) + offset) * width,
                           size_t(n * width));
             });
    if (c == groupRank) {
      own = position;
    } else {
      requests.emplace_back();
      MPI_Irecv(incoming.data() + c * mineBytes, int(mineBytes), MPI_BYTE, c, kDataTag, comm,
                &requests.back());
      requests.emplace_back();
      MPI_Isend(out, int((part.end - part.begin) * width), MPI_BYTE, c, kDataTag, comm,
                &requests.back());
    }
    position += (part.end - part.begin) * width;
  }
  MPI_Waitall(int(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  requests.clear();

  std::vector<const char *> sources(static_cast<size_t>(groupSize));
  for (int r = 0; r < groupSize; ++r)
    sources[size_t(r)] = r == groupRank ? outgoing.data() + own : incoming.data() + r * mineBytes;
  char *sum = outgoing.data() + own;
  reduceInRankOrder(sum, sources.data(), groupSize, mine.end - mine.begin, request.dtype,
                    request.reduce);
  auto unpack = [&](const char *from, Range part) {
    forItems(request.items, begin + part.begin, part.end - part.begin,
             [&](const Item &item, int64_t offset, int64_t at, int64_t n) {
               std::memcpy(item.to + offset * width, from + at * width, size_t(n * width));
             });
  };
  unpack(sum, mine);
  if (scatter)
    return;

  position = 0;
  for (int c = 0; c < groupSize; ++c) {
    int64_t bytes = (share(c).end - share(c).begin) * width;
    if (c != groupRank) {
      requests.emplace_back();
      MPI_Irecv(outgoing.data() + position, int(bytes), MPI_BYTE, c, kResultTag, comm,
                &requests.back());
      requests.emplace_back();
      MPI_Isend(sum, int(mineBytes), MPI_BYTE, c, kResultTag, comm, &requests.back());
    }
    position += bytes;
  }
  MPI_Waitall(int(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  position = 0;
  for (int c = 0; c < groupSize; ++c) {
    if (c != groupRank)
      unpack(outgoing.data() + position, share(c));
    position += (share(c).end - share(c).begin) * width;
  }
}

void MessageGroup::allGather(const Request &request, int64_t begin, int64_t count) {
  int64_t width = sizeOf(request.dtype), bytes = count * width;
  outgoing.resize(size_t(bytes));
  incoming.resize(size_t(bytes * groupSize));
  forItems(
      request.items, begin, count, [&](const Item &item, int64_t offset, int64_t at, int64_t n) {
        std::memcpy(outgoing.data() + at * width, item.from + offset * width, size_t(n * width));
      });
  std::vector<MPI_Request> requests;
  for (int r = 0; r < groupSize; ++r) {
    if (r == groupRank)
      continue;
    requests.emplace_back();
    MPI_Irecv(incoming.data() + r * bytes, int(bytes), MPI_BYTE, r, kDataTag, comm,
              &requests.back());
    requests.emplace_back();
    MPI_Isend(outgoing.data(), int(bytes), MPI_BYTE, r, kDataTag, comm, &requests.back());
  }
  MPI_Waitall(int(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  for (int r = 0; r < groupSize; ++r) {
    const char *from = r == groupRank ? outgoing.data() : incoming.data() + r * bytes;
    forItems(request.items, begin, count,
             [&](const Item &item, int64_t offset, int64_t at, int64_t n) {
               std::memcpy(item.to + (r * item.count + offset) * width, from + at * width,
                           size_t(n * width));
             });
  }
}

void MessageGroup::broadcastSegment(const Request &request, int64_t begin, int64_t count) {
  int64_t width = sizeOf(request.dtype), bytes = count * width;
  outgoing.resize(size_t(bytes));
  if (groupRank == request.root)
    forItems(
        request.items, begin, count, [&](const Item &item, int64_t offset, int64_t at, int64_t n) {
          std::memcpy(outgoing.data() + at * width, item.from + offset * width, size_t(n * width));
        });
  MPI_Bcast(outgoing.data(), int(bytes), MPI_BYTE, request.root, comm);
  if (groupRank != request.root)
    forItems(
        request.items, begin, count, [&](const Item &item, int64_t offset, int64_t at, int64_t n) {
          std::memcpy(item.to + offset * width, outgoing.data() + at * width, size_t(n * width));
        });
}

} // namespace partita_rt
