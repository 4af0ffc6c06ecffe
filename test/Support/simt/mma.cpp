// Implements mma.h: fragments are decomposed lane by lane; each thread has a queue of asynchronous
// copies.

#include "simt/mma.h"

#include "partita_rt/half.h"
#include "simt/wgmma.h"

#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace simt {

namespace {

struct Copy {
  void *to;
  const void *from;
  int bytes, size; ///< copied, and written
  int64_t group;
  bool done;
  void perform() {
    if (std::exchange(done, true))
      return;
    std::memcpy(to, from, size_t(bytes));
    std::memset(static_cast<char *>(to) + bytes, 0, size_t(size - bytes));
    noteWritten(to);
  }
};

struct Queue {
  int64_t block = -1, group = 0;
  std::deque<Copy> copies;
};
thread_local std::vector<Queue> queues;

Queue &queueOfThread() { return ownOfThread(queues); }

template <typename T>
void multiplyAdd(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, Where where) {
  uint32_t mine[6] = {a[0], a[1], a[2], a[3], b0, b1};
  Given all = give(mine, sizeof(mine), where);
  int g = lane() / 4, t = lane() % 4;
  T rows[2][16], columns[2][16]; // of A: g, g + 8; of B: 2t, 2t + 1
  float x[2][16], y[2][16];
  for (int from = 0; from < 4; ++from) {
    auto *pairs = static_cast<const T(*)[2]>(all.of(4 * g + from));
    for (int i = 0; i < 8; ++i)
      rows[i / 2 % 2][i / 4 * 8 + 2 * from + i % 2] = pairs[i / 2][i % 2];
    for (int column = 0; column < 2; ++column) {
      pairs = static_cast<const T(*)[2]>(all.of(4 * (2 * t + column) + from)) + 4;
      for (int i = 0; i < 4; ++i)
        columns[column][i / 2 * 8 + 2 * from + i % 2] = pairs[i / 2][i % 2];
    }
  }
  for (int i = 0; i < 32; ++i) {
    x[i / 16][i % 16] = rows[i / 16][i % 16];
    y[i / 16][i % 16] = columns[i / 16][i % 16];
  }
  for (int k = 0; k < 16; ++k)
    for (int i = 0; i < 4; ++i)
      c[i] += x[i / 2][k] * y[i % 2][k];
}

} // namespace

void multiplyHalves(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, Where where) {
  multiplyAdd<partita_rt::Half>(c, a, b0, b1, where);
}
void multiplyBFloats(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, Where where) {
  multiplyAdd<partita_rt::BFloat16>(c, a, b0, b1, where);
}

void loadMatrices(uint32_t (&r)[4], const void *row, bool transposed, Where where) {
  if (reinterpret_cast<uintptr_t>(row) % 16 != 0)
    throwInKernel("ldmatrix of an address that is no multiple of 16");
  uint16_t mine[8];
  std::memcpy(mine, row, sizeof(mine));
  Given all = give(mine, sizeof(mine), where);
  int g = lane() / 4, t = lane() % 4;
  auto element = [&](int matrix, int i, int j) {
    return static_cast<const uint16_t *>(all.of(8 * matrix + i))[j];
  };
  for (int i = 0; i < 4; ++i) {
    uint16_t first = transposed ? element(i, 2 * t, g) : element(i, g, 2 * t);
    uint16_t second = transposed ? element(i, 2 * t + 1, g) : element(i, g, 2 * t + 1);
    r[i] = first | uint32_t(second) << 16;
  }
}

void copyAsync(void *shared, const void *global, int bytes, int size) {
  Queue &queue = queueOfThread();
  if ((reinterpret_cast<uintptr_t>(shared) | reinterpret_cast<uintptr_t>(global)) %
          uintptr_t(size) !=
      0)
    throwInKernel(("cp.async of " + std::to_string(size) +
                   " bytes with an address that is no multiple of that")
                      .c_str());
  if (bytes < 0 || bytes > size)
    throwInKernel("cp.async of more bytes than it has");
  queue.copies.push_back({shared, global, bytes, size, queue.group, false});
  if (asynchronousNow())
    queue.copies.back().perform();
  onThreadEnd([] {
    if (!queueOfThread().copies.empty())
      throwInKernel("a thread is done, but has not waited for its cp.async");
  });
}

void commitCopies() { ++queueOfThread().group; }

void waitForCopies(int left) {
  Queue &queue = queueOfThread();
  while (!queue.copies.empty() && queue.copies.front().group < queue.group - left) {
    queue.copies.front().perform();
    queue.copies.pop_front();
  }
}

} // namespace simt
