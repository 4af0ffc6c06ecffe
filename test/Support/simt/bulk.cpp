// Implements bulk.h: a block has a list of barriers, and a queue of pending copies.

#include "simt/bulk.h"

#include "simt/wgmma.h"

#include <deque>
#include <map>

namespace simt {

namespace {

struct Barrier {
  bool fenced = false, arrived = false;
  unsigned maker;
  int64_t bytes = 0; ///< announced and not yet copied in this phase
  uint32_t phase = 0;
};

struct Copy {
  unsigned char *to;
  const BoxMap *map;
  int at[BoxMap::kRank];
  uint64_t *barrier;
};

struct Block {
  int64_t number = -1;
  std::map<uint64_t *, Barrier> barriers;
  std::deque<Copy> copies;
};
thread_local Block all;

Block &blockOfThread() {
  if (all.number != blocksBegun()) {
    all = {};
    all.number = blocksBegun();
  }
  return all;
}

Barrier &barrierAt(uint64_t *at) {
  Block &block = blockOfThread();
  auto found = block.barriers.find(at);
  if (found == block.barriers.end())
    throwInKernel("an mbarrier is used before it is made");
  if (!found->second.fenced)
    throwInKernel("an mbarrier is used without fence.mbarrier_init behind its making");
  return found->second;
}

void completeIfDue(uint64_t *at, Barrier &barrier) {
  if (!barrier.arrived || barrier.bytes != 0)
    return;
  barrier.arrived = false;
  ++barrier.phase;
  wakeThreads(at);
}

/// Copies one row of a box, 128 bytes, whose 16-byte chunks are swizzled by their address.
void copyRow(unsigned char *to, const Copy &copy, int row) {
  const BoxMap &map = *copy.map;
  int at[BoxMap::kRank] = {copy.at[0], copy.at[1] + row, copy.at[2], copy.at[3]};
  const unsigned char *from = map.data;
  bool inside = true;
  for (int i = 1; i < BoxMap::kRank; ++i) {
    inside &= at[i] >= 0 && uint32_t(at[i]) < map.sizes[i];
    from += int64_t(map.strides[i - 1]) * at[i];
  }
  uint32_t address = sharedAddress(to);
  for (uint32_t i = 0; i < map.box[0] * 2; i += 2) {
    unsigned char *element = to + ((i / 16 ^ (address >> 7 & 7)) * 16 + i % 16);
    int column = at[0] + int(i / 2);
    if (inside && column >= 0 && uint32_t(column) < map.sizes[0])
      std::memcpy(element, from + 2 * column, 2);
    else
      std::memset(element, 0, 2);
  }
}

void perform(const Copy &copy) {
  Barrier &barrier = blockOfThread().barriers.at(copy.barrier);
  const uint32_t (&box)[BoxMap::kRank] = copy.map->box;
  for (uint32_t row = 0; row < box[1]; ++row)
    copyRow(copy.to + row * 128, copy, int(row));
  barrier.bytes -= int64_t(box[0]) * box[1] * 2;
  completeIfDue(copy.barrier, barrier);
}

bool performAll() {
  std::deque<Copy> &copies = blockOfThread().copies;
  bool any = !copies.empty();
  for (; !copies.empty(); copies.pop_front())
    perform(copies.front());
  return any;
}

} // namespace

void makeBarrier(uint64_t *at) {
  Barrier barrier;
  barrier.maker = threadNumber();
  blockOfThread().barriers[at] = barrier;
}

void fenceBarriers() {
  for (auto &[at, barrier] : blockOfThread().barriers)
    barrier.fenced |= barrier.maker == threadNumber();
}

void announceBytes(uint64_t *at, uint32_t bytes) {
  Barrier &barrier = barrierAt(at);
  if (barrier.arrived)
    throwInKernel("a second arrival at an mbarrier for one");
  barrier.arrived = true;
  barrier.bytes += bytes;
  completeIfDue(at, barrier);
}

void waitForPhase(uint64_t *at, uint32_t parity, Where where) {
  while ((barrierAt(at).phase & 1) == parity)
    waitFor(at, where);
}

void copyBox(void *shared, const BoxMap *map, const int (&at)[BoxMap::kRank], uint64_t *barrier) {
  barrierAt(barrier);
  if (map->magic != BoxMap::kMagic)
    throwInKernel("a bulk copy by something that is no tensor map");
  auto *to = static_cast<unsigned char *>(shared);
  if (sharedAddress(to) % 1024 != 0)
    throwInKernel("a bulk copy to an address that is no multiple of 1,024");
  for (uint32_t i = 0; i < map->box[1] * 128; i += 16)
    if (isUnfenced(to + i))
      throwInKernel(
          "a bulk copy over what a thread has stored without fence.proxy.async behind it");
  std::deque<Copy> &copies = blockOfThread().copies;
  copies.push_back({to, map, {at[0], at[1], at[2], at[3]}, barrier});
  if (asynchronousNow())
    performAll();
  onStandstill(performAll);
  onThreadEnd([] {
    if (isLastThread() && !blockOfThread().copies.empty())
      throwInKernel("a block is done, but nobody has waited for its bulk copies");
  });
}

} // namespace simt
