// Implements wgmma.h: a thread computes its own fragment of each matmul; each thread has a queue of
// pending ones.

#include "simt/wgmma.h"

#include "partita_rt/half.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <utility>
#include <vector>

namespace simt {

namespace {

constexpr uint32_t kBlock = 1024, kWindow = 1 << 18; ///< what a descriptor can address

unsigned char *window() {
  auto at = reinterpret_cast<uintptr_t>(dynamicShared());
  return reinterpret_cast<unsigned char *>(at - at % kBlock);
}

/// Sums that pending matmuls will write.
struct Sums {
  float *c;
  std::vector<float> values;
  int coming;
};

struct Matmul {
  GroupMatmul given;
  float rows[2][16]; ///< of a, if it is in registers
  int64_t group;
  bool done;
};

struct Queue {
  int64_t block = -1, group = 0;
  bool begun = false;
  std::deque<Matmul> matmuls;
  std::deque<Sums> sums;
  std::vector<uint32_t> written; ///< since its last fence, in units of 16 bytes
};
thread_local std::vector<Queue> queues;

/// The number of threads that have written to each 16 bytes without a fence.
struct Written {
  int64_t block = -1;
  std::vector<uint16_t> unfenced;
};
thread_local Written written;

std::vector<uint16_t> &unfenced() {
  if (written.block != blocksBegun()) {
    written.block = blocksBegun();
    written.unfenced.assign(kWindow / 16, 0);
  }
  return written.unfenced;
}

Queue &queueOfThread() { return ownOfThread(queues); }

/// An operand's location, as the hardware finds it.
struct Operand {
  uint32_t start, panels, blocks; ///< in bytes
  explicit Operand(uint64_t descriptor)
      : start(uint32_t(descriptor & 0x3fff) << 4), panels(uint32_t(descriptor >> 16 & 0x3fff) << 4),
        blocks(uint32_t(descriptor >> 32 & 0x3fff) << 4) {
    if (descriptor >> 62 != 1 || (descriptor >> 49 & 7) != 0)
      throwInKernel("wgmma of an operand that has no 128-byte swizzle, or a base offset");
  }
  /// Returns the 16 bytes that hold byte `at` of row `row` of a panel.
  const unsigned char *pack(uint32_t panel, uint32_t row, uint32_t at) const {
    uint32_t address = start + panel * panels + row / 8 * blocks + row % 8 * 128 + at;
    address ^= (address >> 7 & 7) << 4;
    address &= kWindow - 16;
    if (unfenced()[address / 16])
      throwInKernel("wgmma of what a thread has stored without fence.proxy.async behind it");
    return window() + address;
  }
};

float widen(Narrow type, uint16_t bits) {
  if (type == Narrow::Half) {
    partita_rt::Half x;
    x.bits = bits;
    return x;
  }
  partita_rt::BFloat16 x;
  x.bits = bits;
  return x;
}

/// Reads 16 elements of one row of panels.
void readRow(float (&x)[16], Narrow type, const Operand &operand, uint32_t row) {
  for (uint32_t half = 0; half < 2; ++half) {
    uint16_t bits[8];
    std::memcpy(bits, operand.pack(0, row, 16 * half), sizeof(bits));
    for (int i = 0; i < 8; ++i)
      x[8 * half + uint32_t(i)] = widen(type, bits[i]);
  }
}

/// Reads 16 elements of one column of a panel.
void readColumn(float (&x)[16], Narrow type, const Operand &operand, uint32_t column) {
  for (uint32_t k = 0; k < 16; ++k) {
    uint16_t bits;
    std::memcpy(&bits, operand.pack(0, k, column / 8 * 16) + column % 8 * 2, sizeof(bits));
    x[k] = widen(type, bits);
  }
}

/// Computes this thread's rows and columns: `warp` of its group.
void perform(Matmul &matmul, float *c) {
  if (std::exchange(matmul.done, true))
    return;
  const GroupMatmul &given = matmul.given;
  uint32_t warp = threadNumber() / 32 % 4, g = uint32_t(lane()) / 4, t = uint32_t(lane()) % 4;
  if (!given.registers)
    for (uint32_t i = 0; i < 2; ++i)
      (given.leftTransposed ? readColumn : readRow)(matmul.rows[i], given.type, Operand(given.left),
                                                    16 * warp + g + 8 * i);
  Operand right(given.right);
  for (uint32_t j = 0; j < uint32_t(given.columns); ++j) {
    float columns[2][16];
    if (given.transposed)
      for (uint32_t k = 0; k < 16; ++k) {
        uint16_t bits[2];
        std::memcpy(bits, right.pack(j / 8, k, j % 8 * 16) + 4 * t, sizeof(bits));
        for (int e = 0; e < 2; ++e)
          columns[e][k] = widen(given.type, bits[e]);
      }
    else
      for (uint32_t e = 0; e < 2; ++e)
        readRow(columns[e], given.type, right, 8 * j + 2 * t + e);
    for (int i = 0; i < 4; ++i) {
      float sum = given.sum ? c[4 * j + uint32_t(i)] : 0.0f;
      for (int k = 0; k < 16; ++k)
        sum += matmul.rows[i / 2][k] * columns[i % 2][k];
      c[4 * j + uint32_t(i)] = sum;
    }
  }
}

Sums &sumsOf(Queue &queue, float *c) {
  for (Sums &each : queue.sums)
    if (each.c == c)
      return each;
  return queue.sums.emplace_back(Sums{c, {}, 0});
}

} // namespace

uint32_t sharedAddress(const void *p) {
  return uint32_t(static_cast<const unsigned char *>(p) - window());
}

void multiplyGroup(const GroupMatmul &given, Where where) {
  Queue &queue = queueOfThread();
  if (!queue.begun)
    throwInKernel("wgmma without wgmma.fence since its thread waited for the last one");
  Matmul matmul{given, {}, queue.group, false};
  // All lanes are here: they exchange the two rows of a that their fragments need.
  Given all = give(given.registers ? static_cast<const void *>(given.registers) : &given.columns,
                   given.registers ? 16 : sizeof(given.columns), where);
  if (given.registers)
    for (int from = 0; from < 4; ++from) {
      auto *pairs = static_cast<const uint16_t (*)[2]>(all.of(lane() / 4 * 4 + from));
      for (int i = 0; i < 8; ++i)
        matmul.rows[i / 2 % 2][i / 4 * 8 + 2 * from + i % 2] =
            widen(given.type, pairs[i / 2][i % 2]);
    }
  Sums &sums = sumsOf(queue, given.c);
  size_t count = size_t(given.columns) * 4;
  if (sums.coming++ == 0) {
    sums.values.assign(given.c, given.c + count);
    std::fill_n(given.c, count, std::numeric_limits<float>::quiet_NaN());
  }
  queue.matmuls.push_back(matmul);
  if (asynchronousNow())
    for (Matmul &each : queue.matmuls) // in order
      perform(each, sumsOf(queue, each.given.c).values.data());
  onThreadEnd([] {
    if (!queueOfThread().matmuls.empty())
      throwInKernel("a thread is done, but has not waited for its wgmma");
  });
}

void storeMatrices(void *row, const uint32_t (&r)[4], Where where) {
  if (reinterpret_cast<uintptr_t>(row) % 16 != 0)
    throwInKernel("stmatrix to an address that is no multiple of 16");
  Given all = give(r, sizeof(r), where);
  uint32_t pairs[4];
  for (int from = 0; from < 4; ++from) // the lanes with this row's pairs
    pairs[from] = static_cast<const uint32_t *>(all.of(lane() % 8 * 4 + from))[lane() / 8];
  std::memcpy(row, pairs, sizeof(pairs));
  noteWritten(row);
}

void beginMatmuls() { queueOfThread().begun = true; }
void commitMatmuls() { ++queueOfThread().group; }

void waitForMatmuls(int left) {
  Queue &queue = queueOfThread();
  queue.begun = false;
  while (!queue.matmuls.empty() && queue.matmuls.front().group < queue.group - left) {
    Matmul &first = queue.matmuls.front();
    Sums &sums = sumsOf(queue, first.given.c);
    perform(first, sums.values.data());
    if (--sums.coming == 0) {
      std::copy(sums.values.begin(), sums.values.end(), sums.c);
      std::swap(sums, queue.sums.back());
      queue.sums.pop_back();
    }
    queue.matmuls.pop_front();
  }
}

void noteWritten(const void *shared) {
  ptrdiff_t at = static_cast<const unsigned char *>(shared) - window();
  if (at < 0 || at >= ptrdiff_t(kWindow))
    return; // static shared memory
  ++unfenced()[size_t(at) / 16];
  queueOfThread().written.push_back(uint32_t(at) / 16);
}

bool isUnfenced(const void *shared) {
  ptrdiff_t at = static_cast<const unsigned char *>(shared) - window();
  return at >= 0 && at < ptrdiff_t(kWindow) && unfenced()[size_t(at) / 16];
}

void fenceForMatmuls() {
  std::vector<uint32_t> &places = queueOfThread().written;
  for (uint32_t place : places)
    --unfenced()[place];
  places.clear();
}

} // namespace simt
