// Copies, embeddings and take: bits are unchanged; sums of rows are in the order of ids.

#include "partita_rt/cuda/divisor.cuh"
#include "simulated.h"

#include <numeric>

namespace partita_rt::cuda {
namespace {

template <typename T> class Movement : public testing::Test {};
TYPED_TEST_SUITE(Movement, StorageTypes);

/// Returns the strides of a shape whose dimensions are permuted.
Shape stridesOf(const Shape &shape, std::initializer_list<int> slowestFirst) {
  Shape strides = shape;
  int64_t stride = 1;
  for (auto d = slowestFirst.end(); d != slowestFirst.begin();) {
    strides.dims[*--d] = stride;
    stride *= shape[*d];
  }
  return strides;
}

template <typename E> void checkStridedCopies() {
  struct Case {
    Shape shape, dst, src;
  };
  std::vector<Case> cases;
  auto add = [&](Shape shape, std::initializer_list<int> dst, std::initializer_list<int> src) {
    cases.push_back({shape, stridesOf(shape, dst), stridesOf(shape, src)});
  };
  add({3, 5, 64}, {0, 1, 2}, {1, 0, 2}); // rows are permuted
  add({70, 33}, {0, 1}, {1, 0});         // a transpose
  add({2, 40, 3, 50}, {0, 2, 1, 3}, {3, 0, 2, 1});
  add({2, 40, 3, 50}, {0, 1, 2, 3}, {0, 3, 2, 1});
  add({5, 4}, {0, 1}, {1, 0}); // a small one
  add({1, 1}, {0, 1}, {1, 0});
  add({3, 0, 2}, {0, 1, 2}, {2, 1, 0});
  cases.push_back({{4, 6, 40}, {240, 40, 1}, {40, 0, 1}}); // a broadcast
  cases.push_back({{4, 40, 40}, {1600, 40, 1}, {0, 0, 0}});
  cases.push_back({{7, 36}, {50, 1}, {99, 1}});       // a slice
  cases.push_back({{2, 6003}, {6400, 1}, {6032, 1}}); // of many chunks per thread
  for (const Case &c : cases) {
    SCOPED_TRACE(toString(c.shape));
    int64_t size = 13000;
    std::vector<E> src(size), expected(size, E(7)), dst(size, E(7));
    std::iota(src.begin(), src.end(), E(1));
    auto elementBytes = int64_t(sizeof(E));
    partita_rt::stridedCopy(expected.data(), c.dst, src.data(), c.src, c.shape, elementBytes);
    for (int64_t offset : {0, 1}) {
      std::vector<E> to(size + 1, E(7));
      stridedCopy(SimulatedStream(), to.data() + offset, c.dst, src.data(), c.src, c.shape,
                  elementBytes);
      EXPECT_TRUE(std::equal(to.begin() + offset, to.end() - 1 + offset, expected.begin()));
    }
  }
}

TEST(Movement, StridedCopies) {
  checkStridedCopies<uint8_t>();
  checkStridedCopies<uint16_t>();
  checkStridedCopies<uint32_t>();
  checkStridedCopies<uint64_t>();
  EXPECT_EQ(errorOf([&] {
              int x = 0;
              stridedCopy(SimulatedStream(), &x, {}, &x, {}, {}, 3);
            }),
            "stridedCopy: elements of 3 bytes");
}

TYPED_TEST(Movement, Rows) {
  using T = TypeParam;
  SimulatedStream stream;
  for (int64_t width : {5, 32}) {
    Floats x = randomExact<T>(6 * 40, "x"), y(x.size());
    Tensor<T> in(x), out(y);
    partita_rt::copyRows(y.data(), 40, x.data() + 8, 40, 5, width);
    copyRows(stream, out.data(), 40, in.in() + 8, 40, 5, width);
    EXPECT_BITS(out, y);
    Floats twice(6 * 2 * width), dy = randomExact<T>(2 * 7 * width, "dy"), sums(2 * 3 * width);
    Tensor<T> nTwice(twice), nDy(dy, 1), nSums(sums);
    partita_rt::repeat(twice.data(), x.data(), 2, 2, 3, {0, 6}, width);
    repeat(stream, nTwice.data(), in.in(), 2, 2, 3, {0, 6}, width);
    EXPECT_BITS(nTwice, twice);
    partita_rt::repeatSum(sums.data(), dy.data(), 2, 3, 4, {2, 7}, width);
    repeatSum(stream, nSums.data(), nDy.in(), 2, 3, 4, {2, 7}, width);
    EXPECT_BITS(nSums, sums);
  }
}

template <typename T, typename Id> void checkEmbedding(int64_t n, int64_t width, bool one) {
  int64_t vocabulary = one ? 5 : 700;
  std::vector<Id> ids(n);
  for (int64_t i = 0; i < n; ++i)
    ids[i] = Id(one ? 3 : i * i * 7 % vocabulary);
  Floats table = randomExact<T>(vocabulary * width, "table"), dy = randomExact<T>(n * width, "dy");
  TokenRows part(vocabulary, 3, vocabulary - 5); // another rank has the other rows
  Floats y(dy.size());
  Tensor<T> ntable(table, 1), ny(n * width), ndy(dy, 2);
  partita_rt::embeddingForward(y.data(), ids.data(), table.data(), n, width, part);
  SimulatedStream stream(rowSumScratch(n, width));
  embeddingForward(stream, ny.data(), ids.data(), ntable.in(), n, width, part);
  EXPECT_BITS(ny, y);
  for (int64_t period : {int64_t(1), n / 3, n}) // rows that repeat, and as many as there are
    if (n > 0 && n % period == 0) {
      Floats addend = randomExact<T>(period * width, "addend");
      Tensor<T> naddend(addend, 1), nadded(n * width, int(period % 2));
      partita_rt::embeddingAdd(y.data(), ids.data(), table.data(), addend.data(), period, n, width,
                               part);
      embeddingAdd(stream, nadded.data(), ids.data(), ntable.in(), naddend.in(), period, n, width,
                   part);
      EXPECT_BITS(nadded, y);
    }
  for (Write write : {Write::Set, Write::Add}) {
    Floats expected = table, sums = table;
    partita_rt::embeddingBackward(expected.data(), dy.data(), ids.data(), n, width, part, write);
    embeddingBackward(stream, sums.data(), dy.data(), ids.data(), n, width, part, write);
    EXPECT_CLOSE(sums, widen(expected), one ? 1e-5 : 1e-6);
    inEveryOrder([&] {
      Tensor<T> gradient(table);
      embeddingBackward(stream, gradient.data(), ndy.in(), ids.data(), n, width, part, write);
      EXPECT_EQ(difference(gradient.values(), sums), -1);
    });
  }
  EXPECT_EQ(stream.faults.kind, Fault::None);
}

TYPED_TEST(Movement, Embedding) {
  using T = TypeParam;
  checkEmbedding<T, int64_t>(300, 40, false);
  checkEmbedding<T, int32_t>(300, 7, true); // a token that fills the batch: five tiles
  checkEmbedding<T, int32_t>(64, 1030, true);
  checkEmbedding<T, int64_t>(5000, 1, false); // three blocks to sort
  checkEmbedding<T, int64_t>(0, 8, false);
}

TEST(Divisor, IsExact) {
  constexpr int64_t kMost = INT32_MAX;
  for (int64_t by : {int64_t(1), int64_t(2), int64_t(3), int64_t(7), int64_t(64), int64_t(641),
                     int64_t(65537), kMost / 2 + 1, kMost - 1, kMost, kMost + 1, 5 * kMost}) {
    Divisor divisor(by);
    EXPECT_EQ(int64_t(divisor), by);
    for (int64_t near : {int64_t(0), by, 2 * by, 3 * by, kMost / by * by, kMost, 9 * kMost})
      for (int64_t n = std::max<int64_t>(near - 2, 0); n < near + 3; ++n)
        ASSERT_EQ(divisor.quotient(n), n / by) << n << " / " << by;
  }
}

TEST(Embedding, OfManyBlocks) {
  checkEmbedding<float, int32_t>(33000, 1, false); // more counts than are scanned at once
}

TYPED_TEST(Movement, Take) {
  using T = TypeParam;
  constexpr int64_t tables = 3, rows = 105, n = 70, width = 33;
  std::vector<int32_t> ids(tables * n);
  for (size_t i = 0; i < ids.size(); ++i)
    ids[i] = int32_t(i * i % rows);
  Floats x = randomExact<T>(tables * rows * width, "x"),
         dy = randomExact<T>(tables * n * width, "dy"), y(dy.size()), dx(x.size()), sums(x.size());
  Tensor<T> nx(x), ny(dy), ndy(dy), ndx(x);
  SimulatedStream stream(rowSumScratch(tables * n, width));
  partita_rt::takeForward(y.data(), ids.data(), x.data(), tables, n, rows, width);
  takeForward(stream, ny.data(), ids.data(), nx.in(), tables, n, rows, width);
  EXPECT_BITS(ny, y);
  partita_rt::takeBackward(dx.data(), dy.data(), ids.data(), tables, n, rows, width);
  takeBackward(stream, sums.data(), dy.data(), ids.data(), tables, n, rows, width);
  EXPECT_CLOSE(sums, widen(dx), 1e-6);
  takeBackward(stream, ndx.data(), ndy.in(), ids.data(), tables, n, rows, width);
  EXPECT_BITS(ndx, sums);
  ids[n + 4] = -1;
  takeForward(stream, ny.data(), ids.data(), nx.in(), tables, n, rows, width);
  EXPECT_EQ(errorOf([&] { check(stream.faults); }),
            "take: index -1 at position 4 of table 1 is outside 0 .. 104");
  EXPECT_EQ(float(ny.in()[(n + 4) * width]), 0.0f);
}

TEST(Movement, IdsThatAreNone) {
  Floats table = randomFloats(20, "table"), y(12), gradient(20), dy(12, 1.0f);
  std::vector<int64_t> ids = {0, 20, 3};
  SimulatedStream stream(rowSumScratch(3, 4));
  embeddingForward(stream, y.data(), ids.data(), table.data(), 3, 4, 5);
  EXPECT_EQ(
      errorOf([&] { check(stream.faults); }),
      "embedding: index 20 at position 1 (of this rank) is outside 0 .. 4, the rows of the table");
  stream.faults = {};
  embeddingBackward(stream, gradient.data(), dy.data(), ids.data(), 3, 4, 5);
  EXPECT_EQ(std::accumulate(gradient.begin(), gradient.end(), 0.0f), 8.0f);
  EXPECT_NE(errorOf([&] { check(stream.faults); }), "");
}

} // namespace
} // namespace partita_rt::cuda
