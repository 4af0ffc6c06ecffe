// A collective as the transports of all targets see it, with the data that ranks compare.

#ifndef PARTITA_RT_COMMON_MESH_REQUEST_H
#define PARTITA_RT_COMMON_MESH_REQUEST_H

#include "partita_rt/comm.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace partita_rt {

/// Do the transports perform a collective of this form? They read the row, not the kind:
///   in place       a reduction, or a copy of the root's values, in buffers of equal size
///   full to shard  a reduction of full tensors; without one, the source would not be determined
///   to full        all ranks' data for this one, in rank order, not reduced: shards, or a block of
///                  each full tensor
///   shard to shard a shift: a neighbour's shards (shiftSource), not reduced
/// The runtime's README.md says which block goes where, and what replaces a refused form.
constexpr bool isPerformed(const CollectiveRow &row) {
  if (row.inPlace)
    return row.from == Extent::Shard && row.to == Extent::Shard;
  if (row.reduces)
    return row.from == Extent::Full && row.to == Extent::Shard;
  return row.to == Extent::Full || isShift(row);
}
constexpr bool allPerformed() {
  for (const CollectiveRow &row : kCollectives)
    if (!isPerformed(row))
      return false;
  return true;
}
static_assert(allPerformed(), "a row of collectives.h has a form that no transport performs");

/// One buffer: `count` elements of the shard (of the buffer itself for all_reduce and broadcast).
struct Item {
  const char *from;
  char *to;
  int64_t count;
  int64_t fullCount = INT64_MAX; ///< elements of the full tensor at `from` or `to`

  /// Returns how many of n elements from `offset` of rank `part`'s shard are inside the full
  /// tensor.
  int64_t inside(int part, int64_t offset, int64_t n) const {
    return std::clamp<int64_t>(fullCount - (part * count + offset), 0, n);
  }
};

struct Communicator::Request {
  CollectiveKind kind;
  DType dtype = DType::Float32;
  Reduce reduce = Reduce::Sum;
  int root = 0;
  bool back = false; ///< of a shift: from the rank behind
  const char *why = "";
  std::vector<Item> items;

  /// Returns the elements of one rank's shards over all items.
  int64_t elements() const;
  /// Returns the bytes by the census's convention (comm.h).
  int64_t bytes(int groupSize) const;
};

/// Calls visit(item, offset, position, n) for the subranges of the items that make up elements
/// [begin, begin + count) of their concatenation: n elements from `offset` of the item are at
/// `position` of the range.
template <typename Visit>
void forItems(const std::vector<Item> &items, int64_t begin, int64_t count, Visit visit) {
  int64_t base = 0;
  for (const Item &item : items) {
    int64_t low = std::max(begin, base), high = std::min(begin + count, base + item.count);
    if (low < high)
      visit(item, low - base, low - begin, high - low);
    base += item.count;
  }
}

/// The data that ranks compare before they touch each other's buffers; plain memory, so that it can
/// lie in a shared window or travel in a message.
struct Signature {
  uint64_t number = 0;
  int64_t bytes = 0;
  int64_t buffers = 0;
  uint8_t kind = 0;
  uint8_t dtype = 0;
  uint8_t reduce = 0;
  uint8_t back = 0;
  int32_t root = 0;
  char why[96] = {};

  bool matches(const Signature &other) const {
    return number == other.number && bytes == other.bytes && buffers == other.buffers &&
           kind == other.kind && dtype == other.dtype && reduce == other.reduce &&
           back == other.back && root == other.root;
  }
  /// "all_reduce #214 (float32, 4096 bytes in 2 buffers) for h.3.attn".
  std::string text() const;
};

Signature signatureOf(const Communicator::Request &request, uint64_t number, int groupSize);

/// Returns "collectives differ between the ranks of axis dp: rank 1 is at ..., rank 0 at ...", the
/// higher rank first, whichever notices.
std::string mismatchText(const std::string &axis, int rankA, const Signature &a, int rankB,
                         const Signature &b);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_MESH_REQUEST_H
