// Collectives over the ranks of one mesh axis (or of all ranks).
//
// Ranks are threads of one process (default), or processes that meet by MPI or TCP; all transports
// reduce with the same code in rank order, element by element in the type of the buffer:
//     result[i] = ((x_0[i] + x_1[i]) + x_2[i]) + ...
// so all give the same bits, and so does any bucketing. MPI's own reductions are not used. 16-bit
// elements (Half, BFloat16) are sent as such and added in float: the sum is rounded once, at its
// end, whereas a ring that passes on 16-bit partial sums rounds once per rank. A max is exact.
//
//     Pending g3 = allReduceStart(rank.group(0), {{dW, 384 * 1152}, {db, 1152}},
//     "h.3.attn.c_attn");
//     ...                                     // backward pass of the layer below
//     poll(rank.group(0), 1 << 20);           // works on the sum without waiting
//     ...
//     wait(g3);                               // dW and db now hold the sums
//
// Contract: every rank of a group issues the same collectives in the same order with the same types
// and counts. Each one has a number within its group; a mismatch is an error that reports where
// every rank is ("rank 1 is at all_reduce #214 ..., rank 0 at ..."), never a hang. Buffers given to
// a start belong to the collective until its wait: nothing else may read or write them. Waits may
// come in any order; a start that is never waited for is an error at the end of the step. If a rank
// fails, the others' next wait throws Error.
//
// Bytes are counted as the census announces them (wireBytes in collectives.h); those that leave a node are also counted
// as they are sent (node_traffic.h). A group of one rank counts nothing and copies only where input and output differ.

#ifndef PARTITA_RT_COMM_H
#define PARTITA_RT_COMM_H

#include "partita_rt/half.h"
#include "partita_rt/program.h"

#include <algorithm>

namespace partita_rt {

enum class Reduce : uint8_t { Sum, Max };

/// A buffer of `count` contiguous elements. All buffers of a bucket have one type. Booleans have no
/// sum: they are only sent (channel.h) and gathered.
struct Buffer {
  void *data;
  int64_t count;
  DType dtype;
  template <typename T>
  Buffer(T *data, int64_t count) : data(data), count(count), dtype(kDTypeOf<T>) {}
};

/// A full tensor and a shard of it in different buffers. In each of `blocks` consecutive blocks,
/// rank r of the group owns elements [r * count, (r + 1) * count): a block of the full tensor has
/// size() * count elements, one of the shard has count. (Several blocks: an inner dimension is
/// split.) The collective's row says which side is full and which a shard (collectives.h). If both
/// are full, `count` and `blocks` describe both: rank r's block goes to rank r, and the block from
/// rank r takes its place; it cannot be in-place. If both are shards, of one rank and of its neighbour,
/// `from` and `to` are different memory of blocks * count elements. With one block and one full side it may
/// be in-place: the shard may be the r-th shard of the full tensor itself.
///
/// A full tensor of one block may have fewer elements, `fullCount`, than all shards together. The rest
/// of the last shards is padding: no full tensor is read or written for it, and a reduce_scatter
/// sets it to zero.
struct Transfer {
  const void *from;
  void *to;
  int64_t count; ///< elements of a block of the shard
  int64_t blocks;
  int64_t fullCount; ///< elements of the full tensor; 0: as many as all shards
  DType dtype;
  template <typename T>
  Transfer(const T *from, T *to, int64_t count, int64_t blocks = 1, int64_t fullCount = 0)
      : from(from), to(to), count(count), blocks(blocks), fullCount(fullCount), dtype(kDTypeOf<T>) {
  }
};

/// A pending collective. Default-constructed: nothing to wait for.
struct Pending {
  Communicator *group = nullptr;
  uint64_t number = 0;
};

using Bucket = std::initializer_list<Buffer>;
using Transfers = std::initializer_list<Transfer>;

/// Starts a collective of a kind that works in a bucket, or makes transfers. `why` names the
/// parameter or node that requires it; it appears in error messages and must outlive the call (a
/// literal).
Pending startCollective(Communicator &group, CollectiveKind kind, Bucket bucket, const char *why,
                        Reduce reduce);
Pending startCollective(Communicator &group, CollectiveKind kind, Transfers transfers,
                        const char *why);

inline Pending allReduceStart(Communicator &group, Bucket bucket, const char *why,
                              Reduce reduce = Reduce::Sum) {
  return startCollective(group, CollectiveKind::AllReduce, bucket, why, reduce);
}
inline Pending reduceScatterStart(Communicator &group, Transfers transfers, const char *why) {
  return startCollective(group, CollectiveKind::ReduceScatter, transfers, why);
}
inline Pending allGatherStart(Communicator &group, Transfers transfers, const char *why) {
  return startCollective(group, CollectiveKind::AllGather, transfers, why);
}
/// Sets every `to` to the `from` of the rank before this one in the ring (shiftSource), with `back` to that of
/// the rank behind: K and V of ring attention in one call (Liu et al., arXiv 2310.01889).
Pending shiftStart(Communicator &group, Transfers transfers, const char *why, bool back = false);
/// Exchanges blocks: block r of `from` goes to rank r (Transfer). Where one dimension is cut and another joined, as
/// in Ulysses attention (arXiv 2309.14509), the caller packs both sides so that they have the same blocks.
inline Pending allToAllStart(Communicator &group, Transfers transfers, const char *why) {
  return startCollective(group, CollectiveKind::AllToAll, transfers, why);
}
/// Copies group rank `root`'s buffer to all.
Pending broadcastStart(Communicator &group, Bucket bucket, int root, const char *why);
Pending barrierStart(Communicator &group, const char *why);
void wait(Pending pending);

/// Makes progress on the group's oldest collectives, in order, for up to about `bytes` of memory
/// read or written, without waiting. Nothing else works on a collective between its start and its
/// wait: a thread for that would take the ranks' cores. Changes no bits.
void poll(Communicator &group, int64_t bytes);
/// Does the same for the rank's groups of these rows, the one that is waited for soonest first, and
/// for the rank's messages (channel.h).
void poll(Rank &rank, std::initializer_list<int> rows, int64_t bytes);

/// Start and wait.
inline void allReduce(Communicator &group, Bucket bucket, const char *why,
                      Reduce reduce = Reduce::Sum) {
  wait(allReduceStart(group, bucket, why, reduce));
}
inline void reduceScatter(Communicator &group, Transfers transfers, const char *why) {
  wait(reduceScatterStart(group, transfers, why));
}
inline void allGather(Communicator &group, Transfers transfers, const char *why) {
  wait(allGatherStart(group, transfers, why));
}
inline void shift(Communicator &group, Transfers transfers, const char *why, bool back = false) {
  wait(shiftStart(group, transfers, why, back));
}
inline void allToAll(Communicator &group, Transfers transfers, const char *why) {
  wait(allToAllStart(group, transfers, why));
}
void broadcast(Communicator &group, Bucket bucket, int root, const char *why);
void barrier(Communicator &group, const char *why);

/// A rank's number among `ranks` along an axis, or in a group. Of mirrored blocks, odd ones are dealt backwards.
struct ShardOf {
  int64_t rank, ranks;
  bool mirrored = false;

  /// The place of the rank's shard in a block.
  constexpr int64_t placeIn(int64_t block) const {
    return mirrored && block % 2 != 0 ? ranks - 1 - rank : rank;
  }
};

/// The rank's shard of a full tensor that it has: a reduceScatter without the sum.
template <typename T>
void takeShard(ShardOf shard, const T *from, T *to, int64_t count, int64_t blocks,
               int64_t fullCount = 0) {
  if (fullCount) {
    int64_t first = std::min(fullCount, shard.rank * count), n = std::min(count, fullCount - first);
    std::copy_n(from + first, n, to);
    std::fill(to + n, to + count, T(0));
    return;
  }
  for (int64_t block = 0; block < blocks; ++block)
    std::copy_n(from + (block * shard.ranks + shard.placeIn(block)) * count, count,
                to + block * count);
}

/// A full tensor of zeros, with the rank's shard in its place: takeShard's transpose.
template <typename T>
void putShard(ShardOf shard, const T *from, T *to, int64_t count, int64_t blocks) {
  std::fill_n(to, blocks * shard.ranks * count, T(0));
  for (int64_t block = 0; block < blocks; ++block)
    std::copy_n(from + block * count, count,
                to + (block * shard.ranks + shard.placeIn(block)) * count);
}

/// Calls and bytes issued so far.
struct CollectiveCount {
  int64_t calls = 0;
  int64_t bytes = 0;
};

/// Bytes of sums that this rank computed, by the calls in which it did.
struct ReducedCount {
  int64_t inPolls = 0; ///< between kernels: overlapped
  int64_t inWaits = 0; ///< with no other work to do
};

/// One rank's handle on a group. Made by the launcher; emitted code passes it on.
class Communicator {
public:
  virtual ~Communicator() = default;
  /// This rank's number within the group, and the number of ranks in it.
  int rank() const { return groupRank; }
  int size() const { return groupSize; }
  const char *axis() const { return axisName.c_str(); }
  const CollectiveCount &count(CollectiveKind kind) const { return counts[int(kind)]; }
  const ReducedCount &reduced() const { return sums; }
  /// Bytes of data that this rank has handed to a transport for ranks of other nodes; headers and what announces
  /// collectives do not count. 0 where something else sends them: of a CUDA program's ranks, NCCL.
  int64_t sentToOtherNodes() const { return toOtherNodes; }
  /// The clock that counts the time spent here; may be null (work.h).
  WorkClock *clock() const { return timer; }
  void setClock(WorkClock *clock) { timer = clock; }
  /// Collectives started but not waited for.
  virtual int outstanding() const = 0;
  /// Returns true if the wait for collective `number` would return at once.
  virtual bool isComplete(uint64_t number) const = 0;

  /// A collective as the transports see it: buffers flattened. Internal.
  struct Request;
  virtual Pending start(Request request) = 0;
  virtual void finish(uint64_t number) = 0;
  /// Returns the number of bytes worked on.
  virtual int64_t poll(int64_t bytes) = 0;

protected:
  Communicator(std::string axis, int rank, int size)
      : axisName(std::move(axis)), groupRank(rank), groupSize(size) {}
  std::string axisName;
  int groupRank;
  int groupSize;
  CollectiveCount counts[kCollectiveKinds];
  ReducedCount sums;
  int64_t toOtherNodes = 0;
  WorkClock *timer = nullptr;
};

} // namespace partita_rt

#endif // PARTITA_RT_COMM_H
