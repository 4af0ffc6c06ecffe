// Collectives over shared memory (shared_group.h).

#include "cpu/shared_group.h"

namespace partita_rt {

//===-- Board -------------------------------------------------------------------------------===//

void BoardGroup::publish(uint64_t number) {
  BoardSlot &mine = *slots[size_t(groupRank)];
  mine.ring[number % BoardSlot::kRing] = signature(number);
  mine.started.store(number, std::memory_order_release);
}

bool BoardGroup::allStarted(uint64_t number) const {
  for (const BoardSlot *slot : slots)
    if (slot->started.load(std::memory_order_acquire) < number)
      return false;
  return true;
}

void BoardGroup::agree(uint64_t number) {
  for (int r = 0; r < groupSize; ++r) {
    if (r == groupRank)
      continue;
    const BoardSlot &slot = *slots[size_t(r)];
    waitUntil([&] { return slot.started.load(std::memory_order_acquire) >= number; }, failure,
              [&] {
                return signature(number).text() + " for rank " + std::to_string(r) + " of axis " +
                       axisName + ", which has started " + std::to_string(slot.started.load()) +
                       " collectives";
              });
    const Signature &other = slot.ring[number % BoardSlot::kRing];
    if (!other.matches(signature(number))) {
      int low = std::min(r, groupRank), high = std::max(r, groupRank);
      const Signature &mine = signature(number);
      throw Error(
          mismatchText(axisName, high, high == r ? other : mine, low, low == r ? other : mine));
    }
  }
}

void BoardGroup::waitForAll(std::atomic<uint64_t> BoardSlot::*counter, uint64_t target,
                            uint64_t number) {
  for (int r = 0; r < groupSize; ++r) {
    const std::atomic<uint64_t> &value = slots[size_t(r)]->*counter;
    waitUntil([&] { return value.load(std::memory_order_acquire) >= target; }, failure,
              [&] {
                return signature(number).text() + " for rank " + std::to_string(r) + " of axis " +
                       axisName;
              });
  }
}

//===-- Threads -----------------------------------------------------------------------------===//

ThreadGroup::ThreadGroup(std::string axis, int rank, std::shared_ptr<Shared> sharedState,
                         FailureFlag *failure)
    : BoardGroup(std::move(axis), rank, int(sharedState->slots.size()), sharedState->slots.data(),
                 failure),
      shared(std::move(sharedState)) {
  shared->members[size_t(rank)] = this;
}

void ThreadGroup::execute(uint64_t number) {
  if (shares < number) {
    agree(number);
    doShare(number);
  }
  waitForAll(&BoardSlot::done, number, number);
}

void ThreadGroup::progress() {
  while (shares < started && allStarted(shares + 1)) {
    agree(shares + 1);
    doShare(shares + 1);
  }
}

void ThreadGroup::doShare(uint64_t number) {
  const Request &mine = request(number);
  int64_t width = sizeOf(mine.dtype);
  auto itemOf = [&](int r, size_t i) -> const Item & {
    return shared->members[size_t(r)]->request(number).items[i];
  };
  switch (mine.kind) {
  case CollectiveKind::AllReduce:
    allReduceShare(number);
    break;
  case CollectiveKind::ReduceScatter: {
    std::vector<const char *> sources(static_cast<size_t>(groupSize));
    for (size_t i = 0; i < mine.items.size(); ++i) {
      int64_t count = mine.items[i].count;
      for (int r = 0; r < groupSize; ++r)
        sources[size_t(r)] = itemOf(r, i).from + groupRank * count * width;
      reduceInRankOrder(mine.items[i].to, sources.data(), groupSize, count, mine.dtype,
                        mine.reduce);
    }
    break;
  }
  case CollectiveKind::AllGather:
    for (size_t i = 0; i < mine.items.size(); ++i)
      for (int r = 0; r < groupSize; ++r) {
        int64_t bytes = mine.items[i].count * width;
        char *to = mine.items[i].to + r * bytes;
        if (to != itemOf(r, i).from)
          std::memcpy(to, itemOf(r, i).from, size_t(bytes));
      }
    break;
  case CollectiveKind::Broadcast:
    if (groupRank != mine.root)
      for (size_t i = 0; i < mine.items.size(); ++i)
        std::memcpy(mine.items[i].to, itemOf(mine.root, i).from,
                    size_t(mine.items[i].count * width));
    break;
  case CollectiveKind::Barrier:
    break;
  }
  shares = number;
  slots[size_t(groupRank)]->done.store(number, std::memory_order_release);
}

/// This rank's share of the bucket, reduced out of all ranks' buffers, written into all of them.
void ThreadGroup::allReduceShare(uint64_t number) {
  const Request &mine = request(number);
  int64_t width = sizeOf(mine.dtype);
  Range share = shareOf(mine.elements(), groupRank, groupSize);
  std::vector<const char *> sources(static_cast<size_t>(groupSize));
  // Small blocks: the sums are still in the cache when they are copied to the other ranks.
  constexpr int64_t kBlock = 16384;
  for (int64_t begin = share.begin; begin < share.end; begin += kBlock) {
    int64_t count = std::min(kBlock, share.end - begin);
    forItems(mine.items, begin, count, [&](const Item &item, int64_t offset, int64_t, int64_t n) {
      size_t index = size_t(&item - mine.items.data());
      auto at = [&](int r) {
        return shared->members[size_t(r)]->request(number).items[index].to + offset * width;
      };
      for (int r = 0; r < groupSize; ++r)
        sources[size_t(r)] = at(r);
      reduceInRankOrder(at(groupRank), sources.data(), groupSize, n, mine.dtype, mine.reduce);
      for (int r = 0; r < groupSize; ++r)
        if (r != groupRank)
          std::memcpy(at(r), at(groupRank), size_t(n * width));
    });
  }
}

//===-- Window ------------------------------------------------------------------------------===//

void WindowGroup::execute(uint64_t number) {
  agree(number);
  const Request &mine = request(number);
  int64_t width = sizeOf(mine.dtype), elements = mine.elements();
  int64_t blocks = mine.kind == CollectiveKind::ReduceScatter ? groupSize : 1;
  int64_t step = halfBytes / width / blocks;
  for (int64_t begin = 0; begin < elements; begin += step) {
    int64_t count = std::min(step, elements - begin);
    ++segments;
    switch (mine.kind) {
    case CollectiveKind::AllReduce:
      allReduceSegment(mine, begin, count, number);
      break;
    case CollectiveKind::ReduceScatter:
      reduceScatterSegment(mine, begin, count, number);
      break;
    case CollectiveKind::AllGather:
      allGatherSegment(mine, begin, count, number);
      break;
    case CollectiveKind::Broadcast:
      broadcastSegment(mine, begin, count, number);
      break;
    case CollectiveKind::Barrier:
      break;
    }
  }
}

/// This rank's half holds segment number `segments`. Once all halves are filled, every rank has
/// also finished reading the segment before, so the other half may be overwritten next.
void WindowGroup::announceFilled(uint64_t number) {
  slots[size_t(groupRank)]->filled.store(segments, std::memory_order_release);
  waitForAll(&BoardSlot::filled, segments, number);
}

void WindowGroup::allReduceSegment(const Request &request, int64_t begin, int64_t count,
                                   uint64_t number) {
  int64_t width = sizeOf(request.dtype);
  forItems(request.items, begin, count,
           [&](const Item &item, int64_t offset, int64_t position, int64_t n) {
             std::memcpy(half(groupRank) + position * width, item.from + offset * width,
                         size_t(n * width));
           });
  announceFilled(number);
  // Nobody but this rank reads its share of any half before `done`, so the sums may replace it.
  Range share = shareOf(count, groupRank, groupSize);
  std::vector<const char *> sources(static_cast<size_t>(groupSize));
  for (int r = 0; r < groupSize; ++r)
    sources[size_t(r)] = half(r) + share.begin * width;
  reduceInRankOrder(half(groupRank) + share.begin * width, sources.data(), groupSize,
                    share.end - share.begin, request.dtype, request.reduce);
  slots[size_t(groupRank)]->done.store(segments, std::memory_order_release);
  waitForAll(&BoardSlot::done, segments, number);
  for (int r = 0; r < groupSize; ++r) {
    Range part = shareOf(count, r, groupSize);
    forItems(request.items, begin + part.begin, part.end - part.begin,
             [&](const Item &item, int64_t offset, int64_t position, int64_t n) {
               std::memcpy(item.to + offset * width, half(r) + (part.begin + position) * width,
                           size_t(n * width));
             });
  }
}

void WindowGroup::reduceScatterSegment(const Request &request, int64_t begin, int64_t count,
                                       uint64_t number) {
  int64_t width = sizeOf(request.dtype);
  for (int r = 0; r < groupSize; ++r)
    forItems(request.items, begin, count,
             [&](const Item &item, int64_t offset, int64_t position, int64_t n) {
               std::memcpy(half(groupRank) + (r * count + position) * width,
                           item.from + (r * item.count + offset) * width, size_t(n * width));
             });
  announceFilled(number);
  std::vector<const char *> sources(static_cast<size_t>(groupSize));
  forItems(request.items, begin, count,
           [&](const Item &item, int64_t offset, int64_t position, int64_t n) {
             for (int r = 0; r < groupSize; ++r)
               sources[size_t(r)] = half(r) + (groupRank * count + position) * width;
             reduceInRankOrder(item.to + offset * width, sources.data(), groupSize, n,
                               request.dtype, request.reduce);
           });
  slots[size_t(groupRank)]->done.store(segments, std::memory_order_release);
}

void WindowGroup::allGatherSegment(const Request &request, int64_t begin, int64_t count,
                                   uint64_t number) {
  int64_t width = sizeOf(request.dtype);
  forItems(request.items, begin, count,
           [&](const Item &item, int64_t offset, int64_t position, int64_t n) {
             std::memcpy(half(groupRank) + position * width, item.from + offset * width,
                         size_t(n * width));
           });
  announceFilled(number);
  for (int r = 0; r < groupSize; ++r)
    forItems(request.items, begin, count,
             [&](const Item &item, int64_t offset, int64_t position, int64_t n) {
               std::memcpy(item.to + (r * item.count + offset) * width, half(r) + position * width,
                           size_t(n * width));
             });
  slots[size_t(groupRank)]->done.store(segments, std::memory_order_release);
}

void WindowGroup::broadcastSegment(const Request &request, int64_t begin, int64_t count,
                                   uint64_t number) {
  int64_t width = sizeOf(request.dtype);
  if (groupRank == request.root)
    forItems(request.items, begin, count,
             [&](const Item &item, int64_t offset, int64_t position, int64_t n) {
               std::memcpy(half(groupRank) + position * width, item.from + offset * width,
                           size_t(n * width));
             });
  announceFilled(number);
  if (groupRank != request.root)
    forItems(request.items, begin, count,
             [&](const Item &item, int64_t offset, int64_t position, int64_t n) {
               std::memcpy(item.to + offset * width, half(request.root) + position * width,
                           size_t(n * width));
             });
  slots[size_t(groupRank)]->done.store(segments, std::memory_order_release);
}

} // namespace partita_rt
