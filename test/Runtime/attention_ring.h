// Ring attention of one process: the ranks' parts of the sequences, and all of their steps, one after the other.

#ifndef PARTITA_TEST_RUNTIME_ATTENTION_RING_H
#define PARTITA_TEST_RUNTIME_ATTENTION_RING_H

#include "double_attention.h"
#include "half_reference.h"

namespace partita_rt {

enum class RingBias {
  None,
  Full,    ///< [heads, queries, keys]
  Padding, ///< [batch, 1, 1, keys]: a third of the keys, and all of the last ones, are hidden
  Rows     ///< [queries, keys]: some queries see nothing, others a few keys
};

/// How a sequence is dealt to ranks: in one run each, or in two, mirrored.
struct Dealt {
  int64_t ranks = 1;
  bool mirrored = false;

  int64_t runs() const { return mirrored ? 2 : 1; }
  std::vector<int64_t> firstsOf(int64_t rank, int64_t positions) const {
    int64_t run = positions / ranks / runs();
    if (!mirrored)
      return {rank * run};
    return {rank * run, (2 * ranks - 1 - rank) * run};
  }
};

/// Full tensors, unpacked: [batch, sequence, heads, dim]; the numbers are exact in 16 bits.
struct RingOperands {
  AttentionShape a;
  RingBias kind;
  int64_t kv = a.heads / a.groups, nq = a.batch * a.sequence * a.heads,
          nk = a.batch * a.keySequence * kv;
  Floats q = randomExact<BFloat16>(nq * a.headDim, "q"),
         k = randomExact<BFloat16>(nk * a.headDim, "k"),
         v = randomExact<BFloat16>(nk * a.valueDim, "v"),
         dout = randomExact<BFloat16>(nq * a.valueDim, "dout"), bias;
  ConstScores strides;

  /// hidden: what the bias hides keys by.
  RingOperands(const AttentionShape &shape, RingBias kind, float hidden = -INFINITY)
      : a(shape), kind(kind) {
    int64_t s = a.sequence, t = a.keySequence;
    if (kind == RingBias::Full) {
      bias = randomExact<BFloat16>(a.heads * s * t, "bias");
      strides = {nullptr, 0, s * t, t, 1};
    } else if (kind == RingBias::Padding) {
      for (int64_t b = 0; b < a.batch; ++b)
        for (int64_t j = 0; j < t; ++j)
          bias.push_back((j + b) % 3 == 1 || j >= t * 5 / 6 ? hidden : 0.0f);
      strides = {nullptr, t, 0, 0, 1};
    } else if (kind == RingBias::Rows) {
      for (int64_t i = 0; i < s; ++i)
        for (int64_t j = 0; j < t; ++j)
          bias.push_back(i % 5 == 2 || (i % 5 == 3 && j % 17 != 4) ? hidden : 0.5f);
      strides = {nullptr, 0, 0, t, 1};
    }
  }
  size_t atBias(int64_t b, int64_t h, int64_t i, int64_t j) const {
    return size_t(b * strides.batchStride + h * strides.headStride + i * strides.rowStride +
                  j * strides.columnStride);
  }
};

/// The results in the order of the full sequences.
struct RingResults {
  Floats out, logSumExp, dq, dk, dv, dbias;
  explicit RingResults(const RingOperands &o)
      : out(o.dout.size(), NAN), logSumExp(size_t(o.nq), NAN), dq(o.q.size(), NAN),
        dk(o.k.size(), NAN), dv(o.v.size(), NAN), dbias(o.bias.size(), 0.0f) {}
};

/// What one rank has of the sequences.
template <typename T> class RingRank {
public:
  RingRank(const RingOperands &o, Dealt dealt, int64_t rank)
      : queryFirsts(dealt.firstsOf(rank, o.a.sequence)),
        keyFirsts(dealt.firstsOf(rank, o.a.keySequence)), runs(dealt.runs()),
        queries(o.a.sequence / dealt.ranks), keys(o.a.keySequence / dealt.ranks),
        q(partOf<T>(o.q, o, queryFirsts, o.a.heads * o.a.headDim)),
        k(partOf<T>(o.k, o, keyFirsts, o.kv * o.a.headDim)),
        v(partOf<T>(o.v, o, keyFirsts, o.kv * o.a.valueDim)),
        dout(partOf<T>(o.dout, o, queryFirsts, o.a.heads * o.a.valueDim)), out(dout.size(), 7.0f),
        logSumExp(size_t(o.a.batch * o.a.heads * queries), 7.0f), dq(q.size(), 7.0f),
        dk(k.size(), 7.0f), dv(v.size(), 7.0f) {
    for (int64_t b = 0; b < o.a.batch && o.a.firstKeys; ++b)
      for (int64_t i = 0; i < queries; ++i)
        firstKeys.push_back(o.a.firstKeys[b * o.a.sequence + number(queryFirsts, queries, i)]);
    bias = o.bias;
    if (o.strides.rowStride) { // its rows, of all heads
      bias.clear();
      int64_t heads = o.strides.headStride ? o.a.heads : 1;
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t i = 0; i < queries; ++i)
          for (int64_t j = 0; j < o.a.keySequence; ++j)
            bias.push_back(o.bias[o.atBias(0, h, number(queryFirsts, queries, i), j)]);
    }
    narrowBias = rounded<T>(bias);
    dbias.assign(bias.size(), 0.0f);
  }
  /// The global number of a rank's position.
  int64_t number(const std::vector<int64_t> &firsts, int64_t here, int64_t i) const {
    int64_t length = here / runs;
    return firsts[size_t(i / length)] + i % length;
  }
  template <typename E>
  std::vector<E> partOf(const Floats &full, const RingOperands &o,
                        const std::vector<int64_t> &firsts, int64_t width) {
    std::vector<E> part;
    int64_t all = int64_t(full.size()) / width / o.a.batch,
            here = firsts == queryFirsts && all == o.a.sequence ? queries : keys;
    for (int64_t b = 0; b < o.a.batch; ++b)
      for (int64_t i = 0; i < here; ++i) {
        const float *row = full.data() + (b * all + number(firsts, here, i)) * width;
        for (int64_t d = 0; d < width; ++d)
          part.push_back(E(row[d]));
      }
    return part;
  }
  /// Puts a part of a full tensor [batch, sequence, width] back.
  void putBack(Floats &full, const Floats &part, const std::vector<int64_t> &firsts, int64_t here,
               int64_t batch) const {
    int64_t width = int64_t(part.size()) / batch / here, all = int64_t(full.size()) / width / batch;
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t i = 0; i < here; ++i)
        std::copy_n(part.data() + (b * here + i) * width, width,
                    full.data() + (b * all + number(firsts, here, i)) * width);
  }

  std::vector<int64_t> queryFirsts, keyFirsts;
  int64_t runs, queries, keys;
  std::vector<T> q, k, v, dout, narrowBias;
  Floats out, logSumExp, dq, dk, dv, bias, dbias;
  std::vector<int32_t> firstKeys;
};

/// `Steps` has forward(...) and backward(...), called like attentionStep and attentionStepBackward.
template <typename T, typename Steps>
RingResults runRing(const RingOperands &o, Dealt dealt, Steps steps, bool floatBias = false) {
  RingResults results(o);
  std::list<RingRank<T>> ranks;
  std::vector<RingRank<T> *> at;
  for (int64_t r = 0; r < dealt.ranks; ++r)
    at.push_back(&ranks.emplace_back(o, dealt, r));
  auto heads = [&](auto *data, int64_t rows, int64_t count, int64_t dim) {
    return HeadsOf<std::remove_pointer_t<decltype(data)>>{data, rows * count * dim, count * dim,
                                                          dim};
  };
  const AttentionShape &a = o.a;
  auto shapeOf = [&](RingRank<T> &mine, RingRank<T> &theirs, bool last) {
    AttentionShape shape = a;
    shape.sequence = mine.queries;
    shape.keySequence = theirs.keys;
    shape.queries = {a.sequence, mine.runs, mine.queryFirsts.data()};
    shape.keys = {a.keySequence, theirs.runs, theirs.keyFirsts.data()};
    shape.firstKeys = a.firstKeys ? mine.firstKeys.data() : nullptr;
    shape.zeroHidden = a.zeroHidden || !last;
    return shape;
  };
  auto biasOf = [&](RingRank<T> &mine) {
    ScoresOf<const T> bias;
    if (mine.bias.empty())
      return bias;
    if (floatBias)
      bias.data = static_cast<const float *>(mine.bias.data());
    else if constexpr (!std::is_same_v<T, float>)
      bias.data = static_cast<const T *>(mine.narrowBias.data());
    else
      bias.data = mine.bias.data();
    bias.batchStride = o.strides.batchStride;
    bias.headStride = o.strides.headStride ? mine.queries * a.keySequence : 0;
    bias.rowStride = o.strides.rowStride;
    bias.columnStride = o.strides.columnStride;
    return bias;
  };
  auto in = [&](const std::vector<T> &data, int64_t rows, int64_t count, int64_t dim) {
    return heads(data.data(), rows, count, dim);
  };
  for (int64_t r = 0; r < dealt.ranks; ++r)
    for (int64_t j = 0; j < dealt.ranks; ++j) {
      RingRank<T> &mine = *at[size_t(r)],
                  &theirs = *at[size_t((r - j + dealt.ranks) % dealt.ranks)];
      steps.forward(heads(mine.out.data(), mine.queries, a.heads, a.valueDim),
                    mine.logSumExp.data(), in(mine.q, mine.queries, a.heads, a.headDim),
                    in(theirs.k, theirs.keys, o.kv, a.headDim),
                    in(theirs.v, theirs.keys, o.kv, a.valueDim),
                    shapeOf(mine, theirs, j + 1 == dealt.ranks), biasOf(mine), j > 0);
    }
  for (int64_t j = 0; j < dealt.ranks; ++j)
    for (int64_t r = 0; r < dealt.ranks; ++r) {
      RingRank<T> &mine = *at[size_t(r)],
                  &theirs = *at[size_t((r - j + dealt.ranks) % dealt.ranks)];
      std::vector<T> out = rounded<T>(mine.out);
      Floats workspace(2 * mine.logSumExp.size(), NAN);
      ScoresOf<const T> bias = biasOf(mine);
      Scores dbias;
      if (bias.data)
        dbias = {mine.dbias.data(), bias.batchStride, bias.headStride, bias.rowStride,
                 bias.columnStride};
      Floats dk(theirs.dk.size(), NAN), dv(theirs.dv.size(), NAN); // of this step alone
      steps.backward(heads(mine.dq.data(), mine.queries, a.heads, a.headDim),
                     heads(dk.data(), theirs.keys, o.kv, a.headDim),
                     heads(dv.data(), theirs.keys, o.kv, a.valueDim), workspace.data(),
                     in(mine.dout, mine.queries, a.heads, a.valueDim),
                     in(out, mine.queries, a.heads, a.valueDim), mine.logSumExp.data(),
                     in(mine.q, mine.queries, a.heads, a.headDim),
                     in(theirs.k, theirs.keys, o.kv, a.headDim),
                     in(theirs.v, theirs.keys, o.kv, a.valueDim), shapeOf(mine, theirs, true), bias,
                     dbias, j > 0);
      for (auto [sum, part] : {std::pair(&theirs.dk, &dk), {&theirs.dv, &dv}})
        for (size_t i = 0; i < part->size(); ++i)
          (*sum)[i] = j > 0 ? (*sum)[i] + (*part)[i] : (*part)[i];
    }
  for (RingRank<T> *each : at) {
    each->putBack(results.out, each->out, each->queryFirsts, each->queries, a.batch);
    each->putBack(results.dq, each->dq, each->queryFirsts, each->queries, a.batch);
    each->putBack(results.dk, each->dk, each->keyFirsts, each->keys, a.batch);
    each->putBack(results.dv, each->dv, each->keyFirsts, each->keys, a.batch);
    each->putBack(results.logSumExp, each->logSumExp, each->queryFirsts, each->queries,
                  a.batch * a.heads);
    if (o.strides.rowStride)
      each->putBack(results.dbias, each->dbias, each->queryFirsts, each->queries,
                    o.strides.headStride ? a.heads : 1);
    else
      for (size_t i = 0; i < results.dbias.size(); ++i)
        results.dbias[i] += each->dbias[i];
  }
  return results;
}

/// One attention with all keys, by whole(...) and wholeBackward(...) of `Steps`, called like attentionForward and
/// attentionBackward.
template <typename T> struct Whole {
  std::vector<T> out, dq, dk, dv;
  Floats logSumExp, dbias;

  template <typename Steps>
  Whole(const RingOperands &o, Steps steps)
      : out(o.dout.size()), dq(o.q.size()), dk(o.k.size()), dv(o.v.size()), logSumExp(size_t(o.nq)),
        dbias(o.bias.size()) {
    const AttentionShape &a = o.a;
    std::vector<T> q = rounded<T>(o.q), k = rounded<T>(o.k), v = rounded<T>(o.v),
                   dout = rounded<T>(o.dout), narrowBias = rounded<T>(o.bias);
    auto heads = [&](auto *data, int64_t rows, int64_t count, int64_t dim) {
      return HeadsOf<std::remove_pointer_t<decltype(data)>>{data, rows * count * dim, count * dim,
                                                            dim};
    };
    auto in = [&](const std::vector<T> &data, int64_t rows, int64_t count, int64_t dim) {
      return heads(data.data(), rows, count, dim);
    };
    ScoresOf<const T> bias;
    Scores gradient;
    if (!o.bias.empty()) {
      const ConstScores &s = o.strides;
      const T *data = narrowBias.data();
      bias = {data, s.batchStride, s.headStride, s.rowStride, s.columnStride};
      gradient = {dbias.data(), s.batchStride, s.headStride, s.rowStride, s.columnStride};
    }
    int64_t s = a.sequence, t = a.keySequence;
    steps.whole(heads(out.data(), s, a.heads, a.valueDim), logSumExp.data(),
                in(q, s, a.heads, a.headDim), in(k, t, o.kv, a.headDim), in(v, t, o.kv, a.valueDim),
                a, bias);
    Floats workspace(size_t(std::max(attentionWorkspace(a, kDTypeOf<T>), 2 * o.nq)));
    steps.wholeBackward(
        heads(dq.data(), s, a.heads, a.headDim), heads(dk.data(), t, o.kv, a.headDim),
        heads(dv.data(), t, o.kv, a.valueDim), workspace.data(), in(dout, s, a.heads, a.valueDim),
        in(out, s, a.heads, a.valueDim), logSumExp.data(), in(q, s, a.heads, a.headDim),
        in(k, t, o.kv, a.headDim), in(v, t, o.kv, a.valueDim), a, bias, gradient);
  }
};

using RingReference = DoubleAttention<RingOperands>;

struct RingCase {
  const char *what;
  AttentionShape shape;
  RingBias bias = RingBias::None;
};

inline AttentionShape ringShape(int64_t batch, int64_t heads, int64_t sequence, int64_t keys,
                                int64_t dim, bool causal, int64_t groups = 1, int64_t valueDim = 0,
                                int64_t window = 0, float scale = 0.0f) {
  return {batch,
          heads,
          sequence,
          keys,
          dim,
          valueDim ? valueDim : dim,
          groups,
          causal,
          scale != 0.0f ? scale : 1.0f / std::sqrt(float(dim)),
          window,
          /*zeroHidden=*/true};
}

/// Every mask, in sequences of `unit` * 24 positions (1 to 4 ranks, two runs each), and with longer ones.
/// Three random layouts, of heads in turn, of 24 x 24 blocks of `unit` positions.
inline AttentionShape withRandomLayouts(AttentionShape shape, int64_t unit) {
  LayoutMaker maker(int32_t(unit), 24);
  for (uint32_t seed = 1; seed <= 3; ++seed)
    maker.addRandom(seed);
  return maker.of(shape);
}

inline std::vector<RingCase> ringCases(int64_t unit) {
  int64_t s = 24 * unit;
  auto withLayouts = [&](AttentionShape shape) { return withRandomLayouts(shape, unit); };
  return {
      {"causal", ringShape(2, 2, s, s, 8, true)},
      {"bidirectional", ringShape(2, 3, s, s, 20, false, 3, 12)},
      {"window", ringShape(1, 2, s, s, 16, true, 1, 0, unit * 5 + 1)},
      {"short window", ringShape(1, 1, s, s, 8, true, 1, 0, 1)},
      {"window of the last keys", ringShape(1, 1, s, s, 8, false, 1, 0, s / 3)},
      {"groups", ringShape(1, 6, s, s, 16, true, 3)},
      {"more keys", ringShape(1, 2, s, 2 * s, 8, true)},
      {"more queries", ringShape(1, 2, 2 * s, s, 8, true)},
      {"more keys and a window", ringShape(1, 2, s, 2 * s, 8, true, 1, 0, s)},
      {"documents", withDocuments(ringShape(2, 2, s, s, 8, true), s / 5)},
      {"documents in a window", withDocuments(ringShape(1, 2, s, s, 8, true, 1, 0, s / 4), s / 5)},
      {"documents, bidirectional", withDocuments(ringShape(2, 1, s, s, 8, false), s / 3)},
      {"dropout", withDropout(ringShape(2, 2, s, s, 8, true), 0.3)},
      {"all dropped", withDropout(ringShape(1, 1, s, s, 8, true), 1.0)},
      {"dropout, bidirectional, more keys",
       withDropout(ringShape(1, 4, s, 2 * s, 8, false, 2), 0.5)},
      {"bias", ringShape(1, 2, s, s, 8, false), RingBias::Full},
      {"bias, causal", ringShape(2, 4, s, s, 8, true, 2), RingBias::Full},
      {"bias in a window", ringShape(1, 2, s, s, 8, true, 1, 0, unit * 7), RingBias::Full},
      {"padding", ringShape(3, 2, s, s, 8, false), RingBias::Padding},
      {"padding, causal", ringShape(3, 2, s, s, 8, true), RingBias::Padding},
      {"queries that see nothing", ringShape(1, 2, s, s, 8, false), RingBias::Rows},
      {"queries that see nothing, causal", ringShape(1, 2, s, s, 8, true), RingBias::Rows},
      {"negative scale", ringShape(1, 1, s, s, 8, true, 1, 0, 0, -0.7f)},
      {"layouts", withLayouts(ringShape(1, 4, s, s, 8, false))},
      {"layouts, causal", withLayouts(ringShape(2, 3, s, s, 8, true))},
      {"layouts, window, groups", withLayouts(ringShape(1, 4, s, s, 8, true, 2, 0, s / 2))},
      {"layouts, documents, dropout",
       withDropout(withDocuments(withLayouts(ringShape(1, 3, s, s, 8, true)), s / 3), 0.2)},
      {"layouts, bias", withLayouts(ringShape(1, 2, s, s, 8, false)), RingBias::Full},
  };
}

/// Masks that hide keys by finite numbers, all keys of some queries among them: a query that has no other key sees the
/// hidden ones, with scores rounded to the precision of the mask's number. The lowest float leaves nothing of the scores.
struct FiniteMask {
  const char *what;
  AttentionShape shape;
  RingBias kind;
  float hidden;
};
inline std::vector<FiniteMask> finiteMasks(int64_t unit) {
  int64_t s = 24 * unit;
  std::vector<FiniteMask> masks;
  for (float hidden : {std::numeric_limits<float>::lowest(), -1e9f, -61440.0f})
    for (RingBias kind : {RingBias::Padding, RingBias::Rows}) {
      masks.push_back({"bidirectional", ringShape(2, 2, s, s, 8, false), kind, hidden});
      masks.push_back({"causal, groups", ringShape(2, 4, s, s, 16, true, 2), kind, hidden});
      masks.push_back({"window", ringShape(1, 2, s, s, 8, true, 1, 0, s / 3), kind, hidden});
      masks.push_back({"dropout", withDropout(ringShape(2, 2, s, s, 8, true), 0.3), kind, hidden});
      masks.push_back(
          {"documents", withDocuments(ringShape(2, 2, s, s, 8, true), s / 5), kind, hidden});
      masks.push_back(
          {"layouts", withRandomLayouts(ringShape(1, 3, s, s, 8, false), unit), kind, hidden});
    }
  return masks;
}

/// One step with all keys has the bits of one attention.
template <typename T, typename Steps>
void expectBitsOfOneAttention(const RingCase &c, Steps steps) {
  SCOPED_TRACE(c.what);
  RingOperands o(c.shape, c.bias);
  Whole<T> whole(o, steps);
  RingResults step = runRing<T>(o, {1, false}, steps);
  EXPECT_ROUNDED(whole.out, step.out);
  EXPECT_EQ(difference(whole.logSumExp, step.logSumExp), -1);
  EXPECT_ROUNDED(whole.dq, step.dq);
  EXPECT_ROUNDED(whole.dk, step.dk);
  EXPECT_ROUNDED(whole.dv, step.dv);
  EXPECT_EQ(difference(whole.dbias, step.dbias), -1);
}

} // namespace partita_rt

#endif // PARTITA_TEST_RUNTIME_ATTENTION_RING_H
