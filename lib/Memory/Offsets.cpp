//===- Offsets.cpp - one arena: the tightest gap for the largest first ------------------------===//
//
// Storages are placed in the order of their size (ties: of their birth). Each goes into the
// tightest gap between those already placed whose lives meet its own, or behind the last of them.
//
//===------------------------------------------------------------------------------------------===//

#include "partita/Memory/Plan.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace partita::memory;

/// The offset for `bytes` among neighbours given as (offset, end), sorted by offset.
static int64_t tightestGap(ArrayRef<std::pair<int64_t, int64_t>> taken, int64_t bytes) {
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

int64_t partita::memory::assignOffsets(std::vector<Storage> &storages, rt::Space space) {
  SmallVector<Storage *> order;
  for (Storage &storage : storages)
    if (storage.space == space)
      order.push_back(&storage);
  llvm::sort(order, [](const Storage *a, const Storage *b) {
    return std::make_tuple(-a->bytes, a->first, a) < std::make_tuple(-b->bytes, b->first, b);
  });
  int64_t size = 0;
  std::vector<Storage *> placed; // sorted by offset
  SmallVector<std::pair<int64_t, int64_t>> taken;
  for (Storage *storage : order) {
    taken.clear();
    for (Storage *other : placed)
      if (other->first <= storage->last && storage->first <= other->last)
        taken.push_back({other->offset, other->offset + align(other->bytes)});
    storage->offset = tightestGap(taken, align(storage->bytes));
    auto position = llvm::upper_bound(
        placed, storage, [](const Storage *a, const Storage *b) { return a->offset < b->offset; });
    placed.insert(position, storage);
    size = std::max(size, storage->offset + align(storage->bytes));
  }
  return size;
}
