// Collectives through staging memory (segmented_group.h).

#include "cpu/groups/segmented_group.h"

namespace partita_rt {

/// Works on the oldest segment first: on steps that complete a collective, then on those that
/// others wait for.
bool SegmentedGroup::advance() {
  if (reading.segment < reducing.segment) {
    Segment segment = at(reading);
    bool reads = isRead(segment.request);
    if (!reads || mayRead(segment)) {
      if (reads)
        read(segment);
      release(segment);
      completed += step(reading, segment) ? 1 : 0;
      return true;
    }
  }
  if (reducing.segment < filling.segment)
    if (Segment segment = at(reducing); mayReduce(segment)) {
      reduce(segment);
      step(reducing, segment);
      return true;
    }
  if (filling.collective <= started && filling.segment < reading.segment + kStagingSlots)
    if (Segment segment = at(filling); mayFill(segment)) {
      fill(segment);
      step(filling, segment);
      return true;
    }
  return false;
}

SegmentedGroup::Segment SegmentedGroup::at(const Cursor &cursor) const {
  const Request &mine = request(cursor.collective);
  int64_t count = std::min(segmentElements(mine), mine.elements() - cursor.begin);
  return {mine, cursor.collective, cursor.segment, cursor.begin, count, sizeOf(mine.dtype)};
}

bool SegmentedGroup::step(Cursor &cursor, const Segment &segment) const {
  ++cursor.segment;
  cursor.begin += segment.count;
  if (cursor.begin < segment.request.elements())
    return false;
  cursor.begin = 0;
  ++cursor.collective;
  return true;
}

void SegmentedGroup::pack(char *to, const Segment &segment, int64_t begin, int64_t count,
                          int block) {
  int64_t width = segment.width;
  forItems(segment.request.items, begin, count,
           [&](const Item &item, int64_t offset, int64_t position, int64_t n) {
             bool ofFull = rowOf(segment.request.kind).from == Extent::Full;
             int64_t inside = ofFull ? item.inside(block, offset, n) : n;
             char *at = to + position * width;
             std::memcpy(at, item.from + (block * item.count + offset) * width,
                         size_t(inside * width));
             std::memset(at + inside * width, 0, size_t((n - inside) * width));
           });
}

void SegmentedGroup::unpack(const char *from, const Segment &segment, int64_t begin, int64_t count,
                            int block) {
  int64_t width = segment.width;
  forItems(segment.request.items, begin, count,
           [&](const Item &item, int64_t offset, int64_t position, int64_t n) {
             std::memcpy(item.to + (block * item.count + offset) * width, from + position * width,
                         size_t(item.inside(block, offset, n) * width));
           });
}

void SegmentedGroup::reduceTo(char *to, const char *const *sources, const Segment &segment,
                              int64_t count) {
  reduceInRankOrder(to, sources, groupSize, count, segment.request.dtype, segment.request.reduce);
  noteReduced(count * segment.width);
  worked += count * segment.width * groupSize;
}

} // namespace partita_rt
