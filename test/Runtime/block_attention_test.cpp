// Block-sparse attention against the full matrix of scores in double, forward and backward: every kind of
// term, random layouts of each head, with all else that attention can do. 16-bit kernels are the float ones,
// rounded once; a layout of all blocks gives the bits of none.

#include "double_attention.h"
#include "half_reference.h"

namespace partita_rt::block_attention { // tests are compiled together
namespace {

using Kind = BlockTermKind;

/// The operands of one call: unpacked [b, s, h, d] tensors, and a bias [heads, s, s] if there is one.
struct Operands {
  AttentionShape a;
  bool biased;
  int64_t kv = a.heads / a.groups, nq = a.batch * a.sequence * a.heads,
          nk = a.batch * a.sequence * kv;
  Floats q, k, v, dout, bias;
  Operands(const AttentionShape &shape, bool biased)
      : a(shape), biased(biased), q(randomExact<BFloat16>(nq * a.headDim, "q")),
        k(randomExact<BFloat16>(nk * a.headDim, "k")),
        v(randomExact<BFloat16>(nk * a.valueDim, "v")),
        dout(randomExact<BFloat16>(nq * a.valueDim, "dout")),
        bias(randomExact<BFloat16>(biased ? a.heads * a.sequence * a.sequence : 0, "bias")) {}
  size_t atBias(int64_t, int64_t h, int64_t i, int64_t j) const {
    return size_t((h * a.sequence + i) * a.sequence + j);
  }
};

template <typename T> struct Results {
  std::vector<T> out, dq, dk, dv;
  Floats logSumExp, dbias;

  /// forwardOut: if not null, what the backward pass reads.
  explicit Results(const Operands &o, const Floats *forwardOut = nullptr)
      : out(o.dout.size(), T(NAN)), dq(o.q.size(), T(NAN)), dk(o.k.size(), T(NAN)),
        dv(o.v.size(), T(NAN)), logSumExp(size_t(o.nq), NAN), dbias(o.bias.size(), NAN) {
    const AttentionShape &a = o.a;
    std::vector<T> q = rounded<T>(o.q), k = rounded<T>(o.k), v = rounded<T>(o.v),
                   dout = rounded<T>(o.dout), bias = rounded<T>(o.bias);
    auto heads = [&](auto *data, int64_t heads, int64_t dim) {
      return HeadsOf<std::remove_pointer_t<decltype(data)>>{data, a.sequence * heads * dim,
                                                            heads * dim, dim};
    };
    auto in = [&](const std::vector<T> &data, int64_t count, int64_t dim) {
      return heads(data.data(), count, dim);
    };
    ScoresOf<const T> scores;
    Scores gradient;
    if (o.biased) {
      const T *data = bias.data();
      scores = {data, 0, a.sequence * a.sequence, a.sequence, 1};
      gradient = {dbias.data(), 0, a.sequence * a.sequence, a.sequence, 1};
    }
    attentionForward(heads(out.data(), a.heads, a.valueDim), logSumExp.data(),
                     in(q, a.heads, a.headDim), in(k, o.kv, a.headDim), in(v, o.kv, a.valueDim), a,
                     scores);
    std::vector<T> read = forwardOut ? rounded<T>(*forwardOut) : out;
    Floats workspace(size_t(attentionWorkspace(a, kDTypeOf<T>)), NAN);
    attentionBackward(heads(dq.data(), a.heads, a.headDim), heads(dk.data(), o.kv, a.headDim),
                      heads(dv.data(), o.kv, a.valueDim), workspace.data(),
                      in(dout, a.heads, a.valueDim), in(read, a.heads, a.valueDim),
                      logSumExp.data(), in(q, a.heads, a.headDim), in(k, o.kv, a.headDim),
                      in(v, o.kv, a.valueDim), a, scores, gradient);
  }
};

template <typename T> void expectRounded(const Operands &o, const Results<float> &exact) {
  Floats out = widened(rounded<T>(exact.out)); // the 16-bit backward pass reads this
  Results<float> wanted(o, &out);
  Results<T> narrow(o);
  EXPECT_ROUNDED(narrow.out, exact.out);
  EXPECT_EQ(difference(narrow.logSumExp, exact.logSumExp), -1);
  EXPECT_ROUNDED(narrow.dq, wanted.dq);
  EXPECT_ROUNDED(narrow.dk, wanted.dk);
  EXPECT_ROUNDED(narrow.dv, wanted.dv);
  EXPECT_EQ(difference(narrow.dbias, wanted.dbias), -1);
}

/// Differences count beside 1 at least: the gradient of a softmax of one key is 0.
void expectClose(Floats actual, Doubles wanted, double tolerance) {
  actual.push_back(1.0f);
  wanted.push_back(1.0);
  EXPECT_CLOSE(actual, wanted, tolerance);
}

void check(const AttentionShape &shape, bool biased = false) {
  AttentionShape a = shape;
  a.zeroHidden = true; // random layouts have rows without a block
  Operands o(a, biased);
  DoubleAttention<Operands> r(o);
  Results<float> actual(o);
  expectClose(actual.out, r.out, 3e-6);
  for (size_t i = 0; i < r.logSumExp.size(); ++i)
    if (std::isinf(r.logSumExp[i]))
      EXPECT_EQ(actual.logSumExp[i], -INFINITY);
    else
      EXPECT_NEAR(actual.logSumExp[i], r.logSumExp[i], 1e-5 * (1 + std::fabs(r.logSumExp[i])));
  expectClose(actual.dq, r.dq, 1e-5);
  expectClose(actual.dk, r.dk, 1e-5);
  expectClose(actual.dv, r.dv, 1e-5);
  expectClose(actual.dbias, r.dbias, 1e-5);
  expectRounded<BFloat16>(o, actual);
}

AttentionShape shapeOf(int64_t batch, int64_t heads, int64_t sequence, int64_t dim, bool causal,
                       int64_t groups = 1, int64_t valueDim = 0, int64_t window = 0) {
  return {batch,    heads,  sequence,
          sequence, dim,    valueDim ? valueDim : dim,
          groups,   causal, 1.0f / std::sqrt(float(dim)),
          window};
}

class BlockAttention : public testing::TestWithParam<int> {}; // positions per block

TEST_P(BlockAttention, OfEveryKindOfTerm) {
  int32_t size = GetParam(), n = 330 / size, half = n / 2, third = std::max(n / 3, 1);
  std::vector<BlockTerm> kinds = {{Kind::Band, -third, 0},
                                  {Kind::Band, -1, 1},
                                  {Kind::Squares, 0, n, third},
                                  {Kind::Squares, 1, n, 2, 1, true},
                                  {Kind::Columns, 1, n, third, 1, true},
                                  {Kind::Columns, 0, half, 4, 2},
                                  {Kind::Rows, 0, n, 3, 1},
                                  {Kind::Rows, half, n, 2, 1, true}};
  for (const BlockTerm &term : kinds)
    for (bool causal : {false, true}) {
      SCOPED_TRACE(testing::Message() << "kind " << int(term.kind) << ", causal " << causal);
      check(LayoutMaker(size, n).add(causal, {term}).of(shapeOf(1, 1, n * size, 8, causal)));
    }
}

TEST_P(BlockAttention, OfRandomLayouts) {
  int32_t size = GetParam(), n = 300 / size;
  for (uint32_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(seed);
    bool causal = seed % 2 == 0;
    AttentionShape shape = shapeOf(2, 4, n * size, 12, causal, 2, 20, seed % 4 == 2 ? 150 : 0);
    if (causal && seed % 3 == 0)
      shape = withDocuments(shape, 90);
    if (seed % 4 >= 2)
      shape = withDropout(shape, 0.3);
    if (seed == 5)
      shape.scale = -shape.scale;
    LayoutMaker maker(size, n);
    maker.addRandom(3 * seed).addRandom(3 * seed + 1).addRandom(3 * seed + 2);
    check(maker.of(shape), seed % 2 == 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, BlockAttention, testing::Values(1, 10, 16, 24, 32, 64, 128));

TEST(BlockAttention, OfMoreThanOneBlockOfKeys) {
  for (int32_t size : {16, 20, 64}) {
    int32_t n = 1300 / size;
    LayoutMaker maker(size, n);
    maker.add(true, {{Kind::Squares, 0, n, 4}, {Kind::Columns, 3, n, 4, 1, true}});
    maker.add(true, {{Kind::Band, -5, 0}}, {{n - 1, 0}, {n / 2, 1}});
    check(maker.of(shapeOf(1, 2, n * size, 20, true)));
  }
  LayoutMaker wide(16, 20); // heads so wide that a pass has 16 keys
  check(wide.addRandom(5).addRandom(6).of(shapeOf(1, 2, 320, 1000, true)));
  LayoutMaker sparse(
      10, 64); // one distant block in 32: blocks of keys are as long as they get, 512 of 640
  sparse.add(true, {{Kind::Band, -2, 0}}, {{40, 5}, {50, 3}, {63, 5}});
  check(sparse.of(shapeOf(1, 1, 640, 1000, true)));
}

/// Of all blocks, in blocks of any size.
TEST(BlockAttention, OfAllBlocksHasTheBitsOfNoLayout) {
  for (int32_t size : {7, 16, 64}) {
    int32_t n = (size == 16 ? 1330 : 400) / size;
    AttentionShape causal = shapeOf(1, 2, n * size, 24, true, 2);
    for (const AttentionShape &shape :
         {causal, shapeOf(1, 2, n * size, 24, false), shapeOf(1, 1, n * size, 24, true, 1, 0, 300),
          withDropout(withDocuments(causal, 400), 0.2)})
      for (bool biased : {false, true}) {
        LayoutMaker maker(size, n);
        maker.add(false, {{Kind::Band, -n, n}});
        maker.add(shape.causal, {{Kind::Band, -n, n}});
        Operands dense(shape, biased), blocks(maker.of(shape), biased);
        Results<float> wanted(dense), actual(blocks);
        EXPECT_EQ(difference(actual.out, wanted.out), -1);
        EXPECT_EQ(difference(actual.logSumExp, wanted.logSumExp), -1);
        EXPECT_EQ(difference(actual.dq, wanted.dq), -1);
        EXPECT_EQ(difference(actual.dk, wanted.dk), -1);
        EXPECT_EQ(difference(actual.dv, wanted.dv), -1);
        EXPECT_EQ(difference(actual.dbias, wanted.dbias), -1);
        Results<Half> narrow(blocks), narrowDense(dense);
        EXPECT_EQ(difference(narrow.dq, widened(narrowDense.dq)), -1);
        EXPECT_EQ(difference(narrow.dk, widened(narrowDense.dk)), -1);
      }
  }
}

/// Keys of hidden blocks are not a number, except for those gathered for other queries of a tile.
TEST(BlockAttention, HiddenBlocksAreNotRead) {
  int32_t n = 24;
  AttentionShape shape = LayoutMaker(64, n)
                             .add(true, {{Kind::Columns, 3, n, 4, 1, true}, {Kind::Band, 0, 0}})
                             .of(shapeOf(1, 1, 64 * n, 16, true));
  Operands clean(shape, false), other(shape, false);
  for (int64_t block = 0; block < 12; ++block)
    if (block % 4 != 3)
      for (Floats *each : {&other.k, &other.v})
        std::fill_n(each->begin() + block * 64 * 16, 64 * 16, NAN);
  Results<float> wanted(clean), actual(other);
  EXPECT_TRUE(std::isnan(actual.out[0]));
  int64_t from = 64 * 13 * 16; // a tile of 48 queries also has queries of block 12
  auto last = [&](const Floats &all) { return Floats(all.begin() + from, all.end()); };
  EXPECT_EQ(last(actual.out), last(wanted.out));
  EXPECT_EQ(last(actual.dq), last(wanted.dq));
  EXPECT_EQ(last(actual.dk), last(wanted.dk));
  EXPECT_EQ(last(actual.dv), last(wanted.dv));
}

TEST(BlockAttention, RowsWithoutABlockAreZeroOrNotANumber) {
  LayoutMaker maker(16, 20);
  AttentionShape shape =
      maker.add(true, {{Kind::Rows, 0, 20, 3, 1}}).of(shapeOf(1, 1, 320, 8, true));
  check(shape);
  Results<float> zeros(Operands(shape, false)), undefined(Operands(shape, true));
  for (size_t i = 0; i < 320; ++i) {
    bool hidden = i / 16 % 3 != 0;
    EXPECT_EQ(zeros.out[8 * i] == 0.0f, hidden);
    EXPECT_EQ(zeros.dq[8 * i] == 0.0f && i > 0, hidden);
    EXPECT_EQ(zeros.logSumExp[i] == -INFINITY, hidden);
    EXPECT_EQ(std::isnan(undefined.out[8 * i]), hidden); // as with a bias of -inf
  }
}

TEST(BlockAttention, OfAnotherSizeThanTheSequence) {
  AttentionShape shape =
      LayoutMaker(16, 4).add(true, {{Kind::Band, -1, 0}}).of(shapeOf(1, 1, 60, 8, true));
  EXPECT_EQ(errorOf([&] { Results<float> results(Operands(shape, false)); }),
            "attention: a layout of 4 x 4 blocks of 16 positions, for 60 queries and 60 keys");
}

} // namespace
} // namespace partita_rt::block_attention
