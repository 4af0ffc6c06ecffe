//===- Offsets.cpp - assigns offsets in the arena: best fit, largest first --------------------===//
//
// Storages are placed one after another, each into the tightest gap between the placed ones with
// overlapping lives, or after the last of them. With the largest first, the arena is hardly ever
// larger than the peak of live bytes. If it is, other orders are tried (by size times life, by
// life), and then the best one with the topmost storage moved to its front, repeatedly, as long as
// the work allows. The smallest arena wins.
//
//===------------------------------------------------------------------------------------------===//

#include "partita/Memory/Plan.h"
#include "llvm/ADT/STLExtras.h"
#include <map>

using namespace llvm;
using namespace partita::memory;

namespace {

using Order = SmallVector<Storage *>;

/// How many pairs of storages may be compared to get a smaller arena: about a second's work.
constexpr int64_t kMostPairs = 200'000'000;

/// Returns the offset for `bytes` among neighbors given as (offset, end), sorted by offset.
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

/// Places storages in this order. Returns the size that they need.
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

/// Returns the peak of live bytes, a lower bound for the arena.
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

/// Sorts by key, largest first; ties by start of life.
template <typename Key> Order sorted(Order order, Key key) {
  llvm::sort(order, [&](const Storage *a, const Storage *b) {
    return std::make_tuple(-key(a), a->first, a) < std::make_tuple(-key(b), b->first, b);
  });
  return order;
}

/// The best order so far.
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
      break; // it does not fit even when placed first
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
    Storage &blocks = plan.storages.emplace_back(); // all blocks, for as long as the ring lives
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
