// Collectives over a shared window (window_group.h).

#include "cpu/groups/window_group.h"

namespace partita_rt {

int64_t WindowGroup::segmentElements(const Request &request) const {
  int64_t blocks = rowOf(request.kind).from == Extent::Full ? groupSize : 1;
  return std::max<int64_t>(1, stagingSlotBytes / sizeOf(request.dtype) / blocks);
}

bool WindowGroup::mayFill(const Segment &segment) {
  return segment.number < board.least(&BoardSlot::read) + kStagingSlots;
}

void WindowGroup::fill(const Segment &segment) {
  const Request &request = segment.request;
  char *mine = stagedBy(groupRank, segment);
  const CollectiveRow &row = rowOf(request.kind);
  int blocks = row.from == Extent::Full ? groupSize : 1;
  if (!row.inPlace || row.reduces || groupRank == request.root)
    for (int b = 0; b < blocks; ++b)
      pack(mine + b * segment.count * segment.width, segment, segment.begin, segment.count, b);
  worked += blocks * segment.count * segment.width;
  board.set(&BoardSlot::filled, segment.number + 1);
}

bool WindowGroup::mayReduce(const Segment &segment) {
  return board.agree(signature(segment.collective)) &&
         board.least(&BoardSlot::filled) > segment.number;
}

void WindowGroup::reduce(const Segment &segment) {
  const Request &request = segment.request;
  const CollectiveRow &row = rowOf(request.kind);
  int64_t width = segment.width;
  // Offset, in every rank's staging slot, of the data for this rank.
  int64_t mine = row.from == Extent::Full ? groupRank * segment.count : 0;
  std::vector<const char *> sources(static_cast<size_t>(groupSize));
  if (row.inPlace && row.reduces) {
    // Other ranks do not read this rank's share of any staging slot before `reduced`, so the sums may
    // replace it.
    Range share = shareOf(segment.count, groupRank, groupSize);
    for (int r = 0; r < groupSize; ++r)
      sources[size_t(r)] = stagedBy(r, segment) + share.begin * width;
    reduceTo(stagedBy(groupRank, segment) + share.begin * width, sources.data(), segment,
             share.end - share.begin);
  } else if (row.inPlace) {
    if (groupRank != request.root)
      unpack(stagedBy(request.root, segment), segment, segment.begin, segment.count);
    worked += segment.count * width;
  } else if (row.reduces) {
    forItems(request.items, segment.begin, segment.count,
             [&](const Item &item, int64_t offset, int64_t position, int64_t n) {
               for (int r = 0; r < groupSize; ++r)
                 sources[size_t(r)] = stagedBy(r, segment) + (mine + position) * width;
               reduceTo(item.to + offset * width, sources.data(), segment, n);
             });
  } else if (isShift(row)) {
    int64_t source = shiftSource(groupRank, groupSize, request.back);
    unpack(stagedBy(int(source), segment), segment, segment.begin, segment.count);
    worked += segment.count * width;
  } else {
    for (int r = 0; r < groupSize; ++r)
      unpack(stagedBy(r, segment) + mine * width, segment, segment.begin, segment.count, r);
    worked += groupSize * segment.count * width;
  }
  board.set(&BoardSlot::reduced, segment.number + 1);
}

bool WindowGroup::mayRead(const Segment &segment) {
  return board.least(&BoardSlot::reduced) > segment.number;
}

void WindowGroup::read(const Segment &segment) {
  for (int r = 0; r < groupSize; ++r) {
    Range share = shareOf(segment.count, r, groupSize);
    unpack(stagedBy(r, segment) + share.begin * segment.width, segment, segment.begin + share.begin,
           share.end - share.begin);
  }
  worked += segment.count * segment.width;
}

void WindowGroup::release(const Segment &segment) {
  board.set(&BoardSlot::read, segment.number + 1);
}

} // namespace partita_rt
