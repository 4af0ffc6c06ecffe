// The collectives, one row per kind: all that the compiler and the runtime must know of a kind.
//
// Ops of the dialects name their kind; the census, `explain`, lowering, emitted programs and
// transports read the rest from its row. runtime/include/README.md says how to add one.

#ifndef PARTITA_RT_COLLECTIVES_H
#define PARTITA_RT_COLLECTIVES_H

#include <cstdint>
#include <optional>
#include <string_view>

namespace partita_rt {

/// The max number of pipeline stages, whose ranks a collective may join.
inline constexpr int kMaxStages = 64;

enum class CollectiveKind : uint8_t {
  AllReduce,
  ReduceScatter,
  AllGather,
  Broadcast,
  Barrier,
  Shift,
  AllToAll
};

/// What a rank has before or after a collective.
enum class Extent : uint8_t {
  Shard, ///< its own shard; for buffers of equal size on all ranks, the buffer
  Full   ///< the shards of all ranks, in their order
};

struct CollectiveRow {
  CollectiveKind kind;
  const char *spelling; ///< the kind's, in the tables of an emitted program
  const char *name;     ///< in the dialects, the census, reports and messages
  const char *call;     ///< the function of comm.h; with the suffix "Start", the one that begins it
  /// The collective of the backward pass if ranks use the result for different work. None: no
  /// gradient passes through.
  std::optional<CollectiveKind> conjugate;
  bool inPrograms; ///< ops issue it; else only the runtime does
  Extent from, to;
  bool inPlace; ///< works in a Bucket's buffers; else Transfers go from one buffer to another
  bool reduces; ///< over the ranks, to a sum or a max, so its elements are numbers
  /// Starts before its result is needed, on a communicator of its own (a row of Program::groups).
  bool ahead;
  const char *does; ///< effect on a value's placement; continues "'par.all_reduce' ..."
};

inline constexpr CollectiveRow kCollectives[] = {
    {CollectiveKind::AllReduce, "AllReduce", "all_reduce", "allReduce", CollectiveKind::AllReduce,
     /*inPrograms=*/true, Extent::Shard, Extent::Shard, /*inPlace=*/true, /*reduces=*/true,
     /*ahead=*/false, "completes the sum"},
    {CollectiveKind::ReduceScatter, "ReduceScatter", "reduce_scatter", "reduceScatter",
     CollectiveKind::AllGather, /*inPrograms=*/true, Extent::Full, Extent::Shard,
     /*inPlace=*/false, /*reduces=*/true, /*ahead=*/false,
     "completes the sum and leaves each rank its shard"},
    {CollectiveKind::AllGather, "AllGather", "all_gather", "allGather",
     CollectiveKind::ReduceScatter, /*inPrograms=*/true, Extent::Shard, Extent::Full,
     /*inPlace=*/false, /*reduces=*/false, /*ahead=*/true, "makes it full"},
    {CollectiveKind::Broadcast, "Broadcast", "broadcast", "broadcast", std::nullopt,
     /*inPrograms=*/false, Extent::Shard, Extent::Shard, /*inPlace=*/true, /*reduces=*/false,
     /*ahead=*/false, "is the root's"},
    {CollectiveKind::Barrier, "Barrier", "barrier", "barrier", std::nullopt,
     /*inPrograms=*/false, Extent::Shard, Extent::Shard, /*inPlace=*/true, /*reduces=*/false,
     /*ahead=*/false, "waits for all"},
    {CollectiveKind::Shift, "Shift", "shift", "shift", CollectiveKind::Shift,
     /*inPrograms=*/true, Extent::Shard, Extent::Shard, /*inPlace=*/false, /*reduces=*/false,
     /*ahead=*/true, "takes the shard of a neighbour in the ring of ranks"},
    {CollectiveKind::AllToAll, "AllToAll", "all_to_all", "allToAll", CollectiveKind::AllToAll,
     /*inPrograms=*/true, Extent::Full, Extent::Full, /*inPlace=*/false, /*reduces=*/false,
     /*ahead=*/false, "splits it along another dimension"},
};
inline constexpr int kCollectiveKinds = int(sizeof(kCollectives) / sizeof(kCollectives[0]));

constexpr const CollectiveRow &rowOf(CollectiveKind kind) { return kCollectives[int(kind)]; }

/// Returns null if no collective has this name.
constexpr const CollectiveRow *collectiveNamed(std::string_view name) {
  for (const CollectiveRow &row : kCollectives)
    if (name == row.name)
      return &row;
  return nullptr;
}

/// Does each rank get the shards of one other?
constexpr bool isShift(const CollectiveRow &row) {
  return !row.inPlace && row.from == Extent::Shard && row.to == Extent::Shard;
}

/// The neighbours in the ring of ranks whose shard a shift brings to `rank`, and that gets this rank's: without
/// `back`, shards go to the next rank, from the last one to rank 0. A shift and a shift back cancel each other.
constexpr int64_t shiftSource(int64_t rank, int64_t ranks, bool back) {
  return (rank + (back ? 1 : ranks - 1)) % ranks;
}
constexpr int64_t shiftTarget(int64_t rank, int64_t ranks, bool back) {
  return shiftSource(rank, ranks, !back);
}

/// Returns the bytes of one rank in one call, as the runtime counts and the census announces them:
/// those of the full tensor, padding included, if either side is full, else those of the buffers.
/// `part` is the size of this rank's shards in bytes.
constexpr int64_t wireBytes(CollectiveKind kind, int64_t part, int64_t ranks) {
  const CollectiveRow &row = rowOf(kind);
  return row.from == Extent::Full || row.to == Extent::Full ? part * ranks : part;
}

namespace collectives_detail {
constexpr bool inOrder() {
  for (int kind = 0; kind < kCollectiveKinds; ++kind)
    if (int(kCollectives[kind].kind) != kind)
      return false;
  return true;
}
constexpr bool conjugatesPair() {
  for (const CollectiveRow &row : kCollectives)
    if (row.conjugate && rowOf(*row.conjugate).conjugate != row.kind)
      return false;
  return true;
}
} // namespace collectives_detail
static_assert(collectives_detail::inOrder(), "rows stand in the order of the enumeration");
static_assert(collectives_detail::conjugatesPair(), "a conjugate's conjugate is the kind itself");

} // namespace partita_rt

#endif // PARTITA_RT_COLLECTIVES_H
