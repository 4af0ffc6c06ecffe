// Collectives between threads (thread_group.h).

#include "cpu/groups/thread_group.h"

namespace partita_rt {

ThreadGroup::ThreadGroup(std::string axis, int rank, std::shared_ptr<Shared> sharedState,
                         FailureFlag *failure)
    : OrderedGroup(std::move(axis), rank, int(sharedState->slots.size())),
      shared(std::move(sharedState)), failure(failure),
      board(axisName, rank, groupSize, shared->slots.data()) {
  shared->members[size_t(rank)] = this;
}

/// Completes a collective once all ranks have done their shares of it. Meanwhile works on this
/// rank's shares of later ones, which only requires that all have started them.
bool ThreadGroup::advance() {
  if (completed < shares && board.least(&BoardSlot::reduced) > completed) {
    ++completed;
    return true;
  }
  if (shares == started || failure->raised() || !board.agree(signature(shares + 1)))
    return false;
  const Request &mine = request(shares + 1);
  Range share = shareOfMine(mine);
  int64_t begin = share.begin + position;
  int64_t count = std::min(share.end - begin, kChunkBytes / sizeOf(mine.dtype) / groupSize + 1);
  work(mine, shares + 1, begin, count);
  position += count;
  if (begin + count == share.end) {
    position = 0;
    board.set(&BoardSlot::reduced, ++shares);
  }
  return true;
}

/// Returns the range of elements that this rank works on.
Range ThreadGroup::shareOfMine(const Request &request) const {
  const CollectiveRow &row = rowOf(request.kind);
  if (row.inPlace && row.reduces)
    return shareOf(request.elements(), groupRank, groupSize);
  bool nothing = row.inPlace && groupRank == request.root;
  return {0, nothing ? 0 : request.elements()};
}

/// Works on elements [begin, begin + count) of the concatenated items, in blocks small enough that
/// sums are still in the cache when they are copied to the other ranks.
void ThreadGroup::work(const Request &mine, uint64_t number, int64_t begin, int64_t count) {
  constexpr int64_t kBlock = 16384;
  int64_t width = sizeOf(mine.dtype);
  const CollectiveRow &row = rowOf(mine.kind);
  std::vector<const char *> sources(static_cast<size_t>(groupSize));
  auto visit = [&](const Item &item, int64_t offset, int64_t, int64_t n) {
    size_t index = size_t(&item - mine.items.data());
    auto of = [&](int r) -> const Item & {
      return shared->members[size_t(r)]->request(number).items[index];
    };
    auto reduceTo = [&](char *to, int64_t from, int64_t n) {
      for (int r = 0; r < groupSize; ++r)
        sources[size_t(r)] = of(r).from + from * width;
      reduceInRankOrder(to, sources.data(), groupSize, n, mine.dtype, mine.reduce);
      noteReduced(n * width);
    };
    char *to = item.to + offset * width;
    if (isShift(row)) {
      int64_t source = shiftSource(groupRank, groupSize, mine.back);
      std::memcpy(to, of(int(source)).from + offset * width, size_t(n * width));
    } else if (!row.inPlace) {
      // Start of the others' data for this rank: its shard, if they have full tensors.
      int64_t first = offset + (row.from == Extent::Full ? groupRank * item.count : 0);
      if (row.reduces) {
        int64_t inside = item.inside(groupRank, offset, n);
        reduceTo(to, first, inside);
        std::memset(to + inside * width, 0, size_t((n - inside) * width));
        return;
      }
      for (int r = 0; r < groupSize; ++r) {
        char *block = to + r * item.count * width;
        if (const char *from = of(r).from + first * width; from != block)
          std::memcpy(block, from, size_t(item.inside(r, offset, n) * width));
      }
    } else if (row.reduces) {
      reduceTo(to, offset, n);
      for (int r = 0; r < groupSize; ++r)
        if (r != groupRank)
          std::memcpy(of(r).to + offset * width, to, size_t(n * width));
    } else {
      std::memcpy(to, of(mine.root).from + offset * width, size_t(n * width));
    }
  };
  for (int64_t at = begin; at < begin + count; at += kBlock)
    forItems(mine.items, at, std::min(kBlock, begin + count - at), visit);
  worked += count * width * groupSize;
}

} // namespace partita_rt
