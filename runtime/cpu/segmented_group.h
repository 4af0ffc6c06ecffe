// Collectives between processes, whose buffers are private: what is sent passes through staging
// memory, segment by segment. Each segment is filled (this rank's values staged or sent), reduced
// (this rank's share summed, once all have filled it) and read (the results copied out of it, once
// all have reduced it). Several segments are under way at a time, each with its place in the
// staging memory, so that no rank stands still because of another's pace.
//
// What a phase does follows from the collective's row (collectives.h):
//
//     segment   summed in place         transfers                        in place, not summed
//     filled    values                  part, or a block per rank        root's values
//     reduced   own share, in place     sum, or all, of what is for      root's -> buffer
//                                       this rank -> buffer
//     read      all shares -> buffer    -                                -

#ifndef PARTITA_RT_CPU_SEGMENTED_GROUP_H
#define PARTITA_RT_CPU_SEGMENTED_GROUP_H

#include "cpu/group.h"
#include "cpu/rank_order.h"

namespace partita_rt {

class SegmentedGroup : public OrderedGroup {
public:
  using OrderedGroup::OrderedGroup;
  /// Segments that may be under way.
  static constexpr uint64_t kPlaces = 8;

protected:
  /// The segment that a phase is at; all phases walk through the same sequence. Each collective has
  /// at least one segment, be it empty.
  struct Cursor {
    uint64_t collective = 1;
    int64_t begin = 0;    ///< element of the concatenated items
    uint64_t segment = 0; ///< counted through all collectives
  };
  struct Segment {
    const Request &request;
    uint64_t collective;
    uint64_t number;
    int64_t begin, count;
    int64_t width; ///< bytes of an element
    uint64_t place() const { return number % kPlaces; }
  };

  /// Elements of one segment of such a collective.
  virtual int64_t segmentElements(const Request &request) const = 0;
  /// Is the segment's place free? This rank itself needs it no more.
  virtual bool mayFill(const Segment &segment) = 0;
  virtual void fill(const Segment &segment) = 0;
  /// Are all ranks' values there (and their signatures equal)?
  virtual bool mayReduce(const Segment &segment) = 0;
  virtual void reduce(const Segment &segment) = 0;
  /// Are all ranks' shares there? Asked only of what is summed in place.
  virtual bool mayRead(const Segment &segment) = 0;
  virtual void read(const Segment &segment) = 0;
  /// The segment needs nothing of the other ranks any more.
  virtual void release(const Segment &) {}

  /// Elements [begin, begin + count) of the items from or to contiguous memory; `block`: the items'
  /// buffers hold one block of item.count elements per rank, that one is meant.
  static void pack(char *to, const Segment &segment, int64_t begin, int64_t count, int block = 0);
  static void unpack(const char *from, const Segment &segment, int64_t begin, int64_t count,
                     int block = 0);
  /// Sums up elements [begin, begin + count) of the segment, one source per rank.
  void reduceTo(char *to, const char *const *sources, const Segment &segment, int64_t count);

  /// The segment that must be finished first.
  uint64_t oldestSegment() const { return reading.segment; }

private:
  bool advance() override;
  Segment at(const Cursor &cursor) const;
  /// Goes to the next segment; was it the collective's last?
  bool step(Cursor &cursor, const Segment &segment) const;

  Cursor filling, reducing, reading;
};

} // namespace partita_rt

#endif // PARTITA_RT_CPU_SEGMENTED_GROUP_H
