// Collectives between processes, whose buffers are private: data pass through staging memory,
// segment by segment. Each segment is filled (this rank's values staged or sent), reduced (this
// rank's share summed, after all have filled it) and read (the results copied out of it, after all
// have reduced it). Several segments are pending at a time, each with its own slot in the staging
// memory, so that no rank stalls at another's pace.
//
// The collective's row (collectives.h) determines the work of each phase:
//
//     segment   summed in place         transfers                        in place, not summed
//     filled    values                  part, or a block per rank        root's values
//     reduced   own share, in place     sum, all, or the neighbour's, of root's -> buffer
//                                       what is for this rank -> buffer
//     read      all shares -> buffer    -                                -

#ifndef PARTITA_RT_CPU_GROUPS_SEGMENTED_GROUP_H
#define PARTITA_RT_CPU_GROUPS_SEGMENTED_GROUP_H

#include "cpu/groups/group.h"
#include "cpu/groups/rank_order.h"

namespace partita_rt {

class SegmentedGroup : public OrderedGroup {
public:
  using OrderedGroup::OrderedGroup;
  /// Max pending segments.
  static constexpr uint64_t kStagingSlots = 8;

protected:
  /// The current segment of a phase; all phases walk through the same sequence. Each collective has
  /// at least one segment, possibly empty.
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
    int64_t width; ///< per element
    uint64_t stagingSlot() const { return number % kStagingSlots; }
  };

  /// Returns the elements per segment of such a collective.
  virtual int64_t segmentElements(const Request &request) const = 0;
  /// Is the segment's staging slot free? This rank itself no longer needs it.
  virtual bool mayFill(const Segment &segment) = 0;
  virtual void fill(const Segment &segment) = 0;
  /// Have all ranks' values arrived (and are their signatures equal)?
  virtual bool mayReduce(const Segment &segment) = 0;
  virtual void reduce(const Segment &segment) = 0;
  /// Are results read in a phase of their own, after all ranks have reduced?
  virtual bool isRead(const Request &request) const {
    return rowOf(request.kind).inPlace && rowOf(request.kind).reduces;
  }
  /// Have all ranks' shares arrived? Called only for collectives that are read.
  virtual bool mayRead(const Segment &segment) = 0;
  virtual void read(const Segment &segment) = 0;
  /// Called when the segment needs nothing more from other ranks.
  virtual void release(const Segment &) {}

  /// Copies elements [begin, begin + count) of the items to or from contiguous memory. `block`
  /// selects one of the per-rank blocks of item.count elements in the items' buffers.
  static void pack(char *to, const Segment &segment, int64_t begin, int64_t count, int block = 0);
  static void unpack(const char *from, const Segment &segment, int64_t begin, int64_t count,
                     int block = 0);
  /// Sums up elements [begin, begin + count) of the segment, one source per rank.
  void reduceTo(char *to, const char *const *sources, const Segment &segment, int64_t count);

  /// Returns the segment that must be finished first.
  uint64_t oldestSegment() const { return reading.segment; }

private:
  bool advance() override;
  Segment at(const Cursor &cursor) const;
  /// Moves to the next segment; returns true if it was the collective's last.
  bool step(Cursor &cursor, const Segment &segment) const;

  Cursor filling, reducing, reading;
};

} // namespace partita_rt

#endif // PARTITA_RT_CPU_GROUPS_SEGMENTED_GROUP_H
