// The mesh of an emitted program, the ranks that communicate, and how axes split a tensor: part of its constant
// tables (program.h).

#ifndef PARTITA_RT_MESH_H
#define PARTITA_RT_MESH_H

#include "partita_rt/types.h"

#include <cstdint>
#include <initializer_list>

namespace partita_rt {

/// One axis of the mesh, outermost first; the last one varies fastest over the ranks (tp innermost). Their number is the product of the sizes.
struct Axis {
  const char *name;
  int size;
};

/// A set of numbers from 0 to 63; {} contains all of them.
struct NumberSet {
  uint64_t bits = ~uint64_t(0);
  constexpr NumberSet() = default;
  constexpr NumberSet(std::initializer_list<int> numbers) : bits(0) {
    for (int number : numbers)
      bits |= uint64_t(1) << number;
  }
  constexpr bool contains(int number) const { return bits >> number & 1; }
  constexpr int first() const { // the set must not be empty
    int number = 0;
    while (!contains(number))
      ++number;
    return number;
  }
};
using AxisSet = NumberSet;
using StageSet = NumberSet; ///< at most kMaxStages

/// Ranks that communicate: those of some stages whose coordinates are equal except along some axes. A
/// rank is in one group of a row, or in none. Each row is a communicator of its own, whose
/// collectives complete in order and do not queue behind another row's. Functions name their row:
/// rank.group(kOverDp).
struct Group {
  const char *name; ///< in the census and messages, which combine rows of the same name
  AxisSet axes;
  StageSet stages = {};
};

/// A directed pair of stages: each rank of stage `from` sends messages to the rank of stage `to`
/// whose other coordinates are equal (channel.h). Messages of one channel arrive in the order in
/// which they are sent; there is no order between two channels, even of the same two stages.
struct Channel {
  const char *name; ///< in messages and reports; unique
  int from, to;     ///< stages, which differ
};

/// Divides dimension `dim` into `blocks` equal blocks, each of which mesh axis number `axis` splits
/// into equal shards. Several entries with the same dim are ordered by blocks, fewer first; with
/// equal blocks, the outermost split first. A split of dimension kFlat comes after all others and
/// splits the elements that they leave, in order, into equal shards; the last ones end in padding. One more
/// splits these shards in turn, with their padding.
constexpr int kFlat = -1;
struct Split {
  int dim = 0;
  int axis = 0;
  int64_t blocks = 1;
  /// Sizes of the blocks, if unequal; then the dimension has no other split.
  int64_t sizes[kMaxBlocks] = {};
  /// Odd blocks are dealt backwards: their first shard is the last rank's.
  bool mirrored = false;
};

/// At most kMaxAxes splits: Splits{{0, 0}} splits dimension 0 over the first axis; {} is full.
struct Splits {
  int count = 0;
  Split list[kMaxAxes] = {};
  constexpr Splits() = default;
  constexpr Splits(std::initializer_list<Split> splits) {
    for (Split split : splits)
      list[count++] = split;
  }
  constexpr const Split *begin() const { return list; }
  constexpr const Split *end() const { return list + count; }
};

} // namespace partita_rt

#endif // PARTITA_RT_MESH_H
