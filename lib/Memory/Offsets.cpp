//===- Offsets.cpp - one arena: the tightest gap for the largest first ------------------------===//
//
// Storages are placed one after the other, each into the tightest gap between those already placed
// whose lives meet its own, or behind the last of them. By size, the largest first, the arena is
// hardly ever larger than what lives at once. Where it is, other orders are tried (by size times
// life, by life), and then the best one with what ended up at the very top moved to its front, as
// long as the work allows; the smallest arena counts.
//
//===------------------------------------------------------------------------------------------===//

#include "partita/Memory/Plan.h"
#include "llvm/ADT/STLExtras.h"
#include <map>

using namespace llvm;
using namespace partita::memory;

namespace {

using Order = SmallVector<Storage *>;

/// Pairs of storages that may be compared for the sake of a smaller arena: about a second.
constexpr int64_t kMostPairs = 200'000'000;

/// The offset for `bytes` among neighbours given as (offset, end), sorted by offset.
int64_t tightestGap(ArrayRef<std::pair<int64_t, int64_t>> taken, int64_t bytes) {
  int64_t best = -1, bestGap = 0, end = 0;
  for (auto [from, to] : taken) {
    int64_t gap = from - end;
    if (gap >= bytes && (best < 0 || gap < bestGap)) {
      best = end;
      bestGap = gap;
    }
    end = std::max(end, to);
  }
  return best < 0 ? end : best;
}

int64_t endOf(const Storage *storage) { return storage->offset + align(storage->bytes); }

/// Places them in this order; returns what they need.
int64_t place(ArrayRef<Storage *> order) {
  int64_t size = 0;
  std::vector<Storage *> placed; // sorted by offset
  SmallVector<std::pair<int64_t, int64_t>> taken;
  for (Storage *storage : order) {
    taken.clear();
    for (Storage *other : placed)
      if (other->first <= storage->last && storage->first <= other->last)
        taken.push_back({other->offset, endOf(other)});
    storage->offset = tightestGap(taken, align(storage->bytes));
    auto position = llvm::upper_bound(
        placed, storage, [](const Storage *a, const Storage *b) { return a->offset < b->offset; });
    placed.insert(position, storage);
    size = std::max(size, endOf(storage));
  }
  return size;
}

/// The most that lives at once: no arena is smaller.
int64_t mostAlive(ArrayRef<Storage *> storages) {
  std::map<int, int64_t> changes;
  for (const Storage *storage : storages) {
    changes[storage->first] += align(storage->bytes);
    changes[storage->last + 1] -= align(storage->bytes);
  }
  int64_t alive = 0, most = 0;
  for (auto [op, change] : changes)
    most = std::max(most, alive += change);
  return most;
}

/// The largest key first; ties: of their birth.
template <typename Key> Order sorted(Order order, Key key) {
  llvm::sort(order, [&](const Storage *a, const Storage *b) {
    return std::make_tuple(-key(a), a->first, a) < std::make_tuple(-key(b), b->first, b);
  });
  return order;
}

/// The best of the orders that were tried.
struct Best {
  Order order;
  int64_t size = -1;

  bool offer(const Order &candidate) {
    int64_t needed = place(candidate);
    if (size >= 0 && needed >= size)
      return false;
    order = candidate;
    size = needed;
    return true;
  }
};

} // namespace

int64_t partita::memory::assignOffsets(std::vector<Storage> &storages, rt::Space space,
                                       unsigned ring) {
  Order all;
  for (Storage &storage : storages)
    if (storage.space == space && storage.ring == ring)
      all.push_back(&storage);
  auto life = [](const Storage *s) { return static_cast<double>(s->last - s->first + 1); };
  auto bytes = [](const Storage *s) { return static_cast<double>(s->bytes); };
  Best best;
  best.offer(sorted(all, bytes));
  int64_t least = mostAlive(all), pairs = static_cast<int64_t>(all.size()) * all.size() / 2;
  int64_t tries = kMostPairs / std::max<int64_t>(pairs, 1);
  if (best.size > least && tries-- > 0)
    best.offer(sorted(all, [&](const Storage *s) { return bytes(s) * life(s); }));
  if (best.size > least && tries-- > 0)
    best.offer(sorted(all, life));
  Order order = best.order;
  for (tries = std::min<int64_t>(tries, 200); tries > 0 && best.size > least; --tries) {
    place(order);
    auto top = llvm::max_element(
        order, [](const Storage *a, const Storage *b) { return endOf(a) < endOf(b); });
    if (top == order.begin())
      break; // alone it is too large
    std::rotate(order.begin(), top, top + 1);
    best.offer(order);
  }
  return place(best.order);
}

void partita::memory::assignOffsets(FunctionPlan &plan) {
  InFlight &inFlight = plan.inFlight;
  size_t own = plan.storages.size();
  int64_t start = 0;
  for (auto [number, ring] : llvm::enumerate(inFlight.rings)) {
    ring.bytes = assignOffsets(plan.storages, rt::Space::InFlight, number);
    ring.start = std::exchange(start, start + ring.bytes);
    Storage &blocks = plan.storages.emplace_back(); // all of them, for as long as the ring lives
    blocks.space = ring.space;
    blocks.bytes = ring.bytes * ring.blocks;
    blocks.first = inFlight.first;
    blocks.last = inFlight.last;
  }
  plan.arenaBytes = assignOffsets(plan.storages, rt::Space::Arena);
  plan.pinnedBytes = assignOffsets(plan.storages, rt::Space::Pinned);
  for (auto [number, ring] : llvm::enumerate(inFlight.rings))
    ring.offset = plan.storages[own + number].offset;
  plan.storages.resize(own);
  for (Storage &storage : plan.storages)
    if (storage.space == rt::Space::InFlight)
      storage.offset += inFlight.rings[storage.ring].start;
}
