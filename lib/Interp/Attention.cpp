//===- Attention.cpp - kernels of attention ---------------------------------------------------===//
//
// One batch element and head at a time, with the whole matrix of probabilities. The backward pass
// computes them again from q and k: it trusts neither `out` nor `lse`. (A step of a ring has to.)
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Par/Placement.h"
#include "dialects/Tx/Tx.h"
#include "lib/Interp/Execution.h"
#include "partita/Interp/Random.h"
#include "llvm/ADT/DenseSet.h"
#include <numeric>

using namespace mlir;
using namespace partita;
using namespace partita::interp;

namespace {

/// Row-major [rows, columns].
struct Matrix {
  int64_t rows, columns;
  std::vector<double> data;
  Matrix(int64_t rows, int64_t columns) : rows(rows), columns(columns), data(rows * columns, 0.0) {}
  double &at(int64_t i, int64_t j) { return data[i * columns + j]; }
  double at(int64_t i, int64_t j) const { return data[i * columns + j]; }
};

Matrix operator*(const Matrix &a, const Matrix &b) {
  Matrix c(a.rows, b.columns);
  multiplyAdd(a.data.data(), b.data.data(), c.data.data(), a.rows, a.columns, b.columns);
  return c;
}

Matrix turned(const Matrix &a) {
  Matrix result(a.columns, a.rows);
  result.data = transposed(a.data.data(), a.rows, a.columns);
  return result;
}

/// Where element [b, i, h, 0] of a tensor [b, s, h, d] stands.
int64_t position(const Tensor &tensor, int64_t b, int64_t i, int64_t h) {
  return ((b * tensor.shape[1] + i) * tensor.shape[2] + h) * tensor.shape[3];
}

/// tensor[b, :, h, :].
Matrix headOf(const Tensor &tensor, int64_t b, int64_t h) {
  Matrix result(tensor.shape[1], tensor.shape[3]);
  for (int64_t i = 0; i < result.rows; ++i)
    std::copy_n(tensor.reals.begin() + position(tensor, b, i, h), result.columns,
                &result.data[i * result.columns]);
  return result;
}

void addHead(Tensor &tensor, int64_t b, int64_t h, const Matrix &head, double scale = 1) {
  for (int64_t i = 0; i < head.rows; ++i)
    for (int64_t j = 0; j < head.columns; ++j)
      tensor.reals[position(tensor, b, i, h) + j] += scale * head.at(i, j);
}

/// Is it a step of a ring, which has no blocks?
template <typename Op>
constexpr bool isStep =
    std::is_same_v<Op, tx::AttentionStepOp> || std::is_same_v<Op, tx::AttentionStepGradOp>;

/// The optional operands; null where there is none.
struct Extras {
  const Tensor *bias = nullptr, *firstKeys = nullptr, *firstHead = nullptr, *key = nullptr,
               *micro = nullptr, *first = nullptr;
  template <typename Op> Extras(Op op, Inputs in) {
    auto of = [&](Value operand) -> const Tensor * {
      for (auto [value, tensor] : llvm::zip(op->getOperands(), in))
        if (operand && value == operand)
          return tensor;
      return nullptr;
    };
    bias = of(op.getBias());
    firstKeys = of(op.getFirstKeys());
    key = of(op.getKey());
    micro = of(op.getMicro());
    first = of(op.getFirst());
    if constexpr (!isStep<Op>)
      firstHead = of(op.getFirstHead());
  }
};

/// Where queries and keys stand in the full sequences, which have s and t positions.
struct Positions {
  std::vector<int64_t> queries, keys;
  int64_t s = 0, t = 0;

  /// All of them.
  static Positions full(const Tensor &q, const Tensor &k) {
    Positions all;
    all.s = q.shape[1];
    all.t = k.shape[1];
    all.queries = run(0, all.s);
    all.keys = run(0, all.t);
    return all;
  }
  static std::vector<int64_t> run(int64_t first, int64_t count) {
    std::vector<int64_t> result(count);
    std::iota(result.begin(), result.end(), first);
    return result;
  }
  /// `count` positions in as many runs as `first` has numbers, each with the number of its first one.
  static std::vector<int64_t> runs(const Tensor &first, int64_t count) {
    std::vector<int64_t> result;
    for (int64_t i = 0, n = count / first.size(); i < count; ++i)
      result.push_back(first.ints[i / n] + i % n);
    return result;
  }
};

/// The query at position i sees keys [first, end).
struct Visible {
  int64_t first, end;
};
/// Query number `row` of this rank, of batch element b.
template <typename Op>
Visible visible(Op op, const Tensor *firstKeys, const Positions &at, int64_t b, size_t row) {
  int64_t i = at.queries[row];
  int64_t end = op.getCausal() ? std::clamp<int64_t>(i + 1 + at.t - at.s, 0, at.t) : at.t;
  int64_t first = firstKeys ? firstKeys->ints[b * int64_t(at.queries.size()) + int64_t(row)] : 0;
  return {op.getWindow() ? std::max(first, end - static_cast<int64_t>(*op.getWindow())) : first,
          end};
}

/// Where element [b, h, i, j] of a bias stands that may have dimensions of size one.
int64_t biasPosition(const Tensor &bias, int64_t b, int64_t h, int64_t i, int64_t j) {
  const int64_t index[] = {b, h, i, j};
  int64_t position = 0;
  for (unsigned d = 0; d < 4; ++d)
    position = position * bias.shape[d] + (bias.shape[d] == 1 ? 0 : index[d]);
  return position;
}

/// The head of k and v that query head h reads.
int64_t keyHead(const Tensor &q, const Tensor &k, int64_t h) {
  return h / (q.shape[2] / k.shape[2]);
}

/// Which keys query i of a head sees, whatever its position in a document.
class VisibleBlocks {
public:
  /// h: the head of this rank; s: the length of the full sequence.
  template <typename Op> VisibleBlocks(Op op, const Extras &extras, int64_t h, int64_t s) {
    if constexpr (!isStep<Op>) {
      tx::BlocksAttr blocks = op.getBlocksAttr();
      if (!blocks)
        return;
      size = blocks.getSize();
      pattern = blocks.patternOf(h + (extras.firstHead ? extras.firstHead->ints[0] : 0));
      layout = pattern.rows(size, s / size);
    }
  }
  bool sees(int64_t i, int64_t j) const {
    return !pattern ||
           isComputed(layout, static_cast<int32_t>(i / size), static_cast<int32_t>(j / size));
  }

private:
  tx::BlockPatternAttr pattern;
  partita_rt::BlockLayout layout{};
  int64_t size = 1;
};

/// scale q k^T + bias of one batch element and head, and which of them a query sees. A bias has rows for these
/// queries, and columns for all positions of keys.
struct Scores {
  Matrix values;
  std::vector<char> seen;
  bool sees(int64_t i, int64_t j) const { return seen[i * values.columns + j]; }
  double largest(int64_t i) const {
    double max = -INFINITY;
    for (int64_t j = 0; j < values.columns; ++j)
      if (sees(i, j))
        max = std::max(max, values.at(i, j));
    return max;
  }
};
template <typename Op>
Scores scoresOf(Op op, const Tensor &qs, const Tensor &ks, const Extras &extras,
                const Positions &at, int64_t b, int64_t h) {
  const Tensor *bias = extras.bias;
  Scores scores{headOf(qs, b, h) * turned(headOf(ks, b, keyHead(qs, ks, h))), {}};
  Matrix &p = scores.values;
  scores.seen.resize(p.data.size());
  VisibleBlocks blocks(op, extras, h, at.s);
  double scale = op.getScale().convertToDouble();
  for (int64_t i = 0; i < p.rows; ++i) {
    auto [first, end] = visible(op, extras.firstKeys, at, b, i);
    for (int64_t j = 0; j < p.columns; ++j) {
      int64_t key = at.keys[j];
      if (key < first || key >= end || !blocks.sees(at.queries[i], key))
        continue;
      scores.seen[i * p.columns + j] = 1;
      p.at(i, j) = p.at(i, j) * scale + (bias ? bias->reals[biasPosition(*bias, b, h, i, key)] : 0);
    }
  }
  return scores;
}

/// softmax of the scores, zero where a query does not see the key; lse gets the rows' log of the denominator.
template <typename Op>
Matrix probabilities(Op op, const Tensor &qs, const Tensor &ks, const Extras &extras,
                     const Positions &at, int64_t b, int64_t h, double *lse) {
  Scores scores = scoresOf(op, qs, ks, extras, at, b, h);
  Matrix &p = scores.values;
  for (int64_t i = 0; i < p.rows; ++i) {
    double largest = scores.largest(i), sum = 0;
    bool hidden = op.getZeroHidden() && largest == -INFINITY;
    for (int64_t j = 0; j < p.columns; ++j)
      if (scores.sees(i, j))
        sum += p.at(i, j) = std::exp(p.at(i, j) - largest);
    for (int64_t j = 0; j < p.columns; ++j)
      p.at(i, j) = scores.sees(i, j) && !hidden ? p.at(i, j) / sum : 0;
    if (lse)
      lse[i] = hidden ? -INFINITY : largest + std::log(sum);
  }
  return p;
}

/// What dropout multiplies the probabilities of one batch element and head by; ones without a key. Their
/// numbers are row-major indices in [b, h, s, t] of the full sequences, of which this may be a shard.
template <typename Op>
Matrix factors(Op op, const Extras &extras, const Positions &at, int64_t b, int64_t h,
               int64_t heads) {
  Matrix result(at.queries.size(), at.keys.size());
  llvm::fill(result.data, 1.0);
  if (!extras.key)
    return result;
  double ratio = op.getRatio()->convertToDouble();
  int64_t elements = op.getQ().getType().getDimSize(0) * heads * at.s * at.t;
  if (auto full = op.getFullShape()) {
    heads = (*full)[1];
    elements = (*full)[0] * heads * at.s * at.t;
  }
  int64_t first = extras.micro->ints[0] * elements + (extras.first ? extras.first->ints[0] : 0) +
                  (b * heads + h) * at.s * at.t;
  for (int64_t i = 0; i < result.rows; ++i)
    for (int64_t j = 0; j < result.columns; ++j)
      result.at(i, j) =
          isDropped(static_cast<uint64_t>(extras.key->ints[0]), static_cast<int64_t>(*op.getId()),
                    first + at.queries[i] * at.t + at.keys[j], ratio)
              ? 0
              : 1 / (1 - ratio);
  return result;
}

/// A query that sees no key (causal, t < s) has no softmax. Kernels choose tiles by first keys, which
/// never fall.
template <typename Op>
LogicalResult checkVisible(Op op, const Positions &at, const Tensor *firstKeys) {
  int64_t s = at.s, t = at.t, rows = int64_t(at.queries.size());
  if (op.getCausal() && t < s)
    return op.emitError() << "is causal with " << s << " queries but only " << t
                          << " keys: the first queries see none";
  for (int64_t row = 0; firstKeys && row < firstKeys->size(); ++row) {
    int64_t first = firstKeys->ints[row], i = row % rows;
    if (first < 0 || first >= visible(op, nullptr, at, 0, i).end)
      return op.emitError() << "query " << at.queries[i] << " of sequence " << row / rows
                            << " begins at key " << first << ": it sees none";
    if (i > 0 && first < firstKeys->ints[row - 1])
      return op.emitError() << "query " << at.queries[i] << " of sequence " << row / rows
                            << " begins at key " << first << ", before the query in front of it";
  }
  return success();
}

} // namespace

static LogicalResult attention(tx::AttentionOp op, Inputs in, Outputs out, const Positions &at) {
  Extras extras(op, in);
  if (failed(checkVisible(op, at, extras.firstKeys)))
    return failure();
  int64_t heads = in[0]->shape[2], s = in[0]->shape[1];
  for (int64_t b = 0; b < in[0]->shape[0]; ++b)
    for (int64_t h = 0; h < heads; ++h) {
      Matrix p = probabilities(op, *in[0], *in[1], extras, at, b, h,
                               out[1].reals.data() + (b * heads + h) * s);
      Matrix kept = factors(op, extras, at, b, h, heads);
      for (auto [weight, factor] : llvm::zip_equal(p.data, kept.data))
        weight *= factor;
      addHead(out[0], b, h, p * headOf(*in[2], b, keyHead(*in[0], *in[1], h)));
    }
  return success();
}

/// Adds to the gradients those of one batch element and head, from probabilities P, what dropout multiplies them by,
/// and the sum of dout out of each row:
///   dv += (P M)^T dout;  dS = P (M (dout v^T) - sum);  dq += scale dS k;  dk += scale dS^T q;  dbias += dS.
/// Heads that share a key head, and elements that share a bias, add up.
template <typename Op>
static void addGradients(Op op, Inputs in, const Tensor &dout, Outputs out, const Extras &extras,
                         const Positions &at, int64_t b, int64_t h, Matrix p, const Matrix &kept,
                         function_ref<double(int64_t, const Matrix &)> rowSum) {
  double scale = op.getScale().convertToDouble();
  int64_t kv = keyHead(*in[0], *in[1], h);
  Matrix q = headOf(*in[0], b, h), k = headOf(*in[1], b, kv), v = headOf(*in[2], b, kv),
         d = headOf(dout, b, h);
  Matrix ds = d * turned(v);
  for (auto [gradient, factor] : llvm::zip_equal(ds.data, kept.data))
    gradient *= factor;
  for (int64_t i = 0; i < p.rows; ++i) {
    double dot = rowSum(i, ds);
    for (int64_t j = 0; j < p.columns; ++j) {
      ds.at(i, j) = p.at(i, j) * (ds.at(i, j) - dot);
      if (extras.bias && out.size() > 3)
        out[3].reals[biasPosition(*extras.bias, b, h, i, at.keys[j])] += ds.at(i, j);
    }
  }
  addHead(out[0], b, h, ds * k, scale);
  addHead(out[1], b, kv, turned(ds) * q, scale);
  for (auto [weight, factor] : llvm::zip_equal(p.data, kept.data))
    weight *= factor;
  addHead(out[2], b, kv, turned(p) * d);
}

/// P is the softmax of rows of scale q k^T + bias; the sum of dout out is that of P M (dout v^T).
static LogicalResult attentionGrad(tx::AttentionGradOp op, Inputs in, Outputs out,
                                   const Positions &at) {
  Extras extras(op, in);
  if (failed(checkVisible(op, at, extras.firstKeys)))
    return failure();
  int64_t heads = in[0]->shape[2];
  for (int64_t b = 0; b < in[0]->shape[0]; ++b)
    for (int64_t h = 0; h < heads; ++h) {
      Matrix p = probabilities(op, *in[0], *in[1], extras, at, b, h, nullptr);
      auto rowSum = [&](int64_t i, const Matrix &dp) {
        double dot = 0;
        for (int64_t j = 0; j < p.columns; ++j)
          dot += p.at(i, j) * dp.at(i, j);
        return dot;
      };
      addGradients(op, in, *in[5], out, extras, at, b, h, p, factors(op, extras, at, b, h, heads),
                   rowSum);
    }
  return success();
}

//===------------------------------------------------------------------------------------------===//
// In a ring: with the keys and values of all ranks, as if they were gathered
//===------------------------------------------------------------------------------------------===//

/// The shards of a group, one behind the other along dimension 1.
static Tensor joined(const RankTensors &shards, ArrayRef<int64_t> group, bool isReal) {
  SmallVector<int64_t> shape(shards[group.front()]->shape);
  int64_t own = shape[1];
  shape[1] *= int64_t(group.size());
  Tensor full(shape, isReal);
  int64_t inner = 1;
  for (int64_t size : ArrayRef(shape).drop_front(2))
    inner *= size;
  for (auto [number, rank] : llvm::enumerate(group))
    for (int64_t b = 0; b < shape[0]; ++b)
      for (int64_t i = 0; i < own * inner; ++i)
        full.copyElement((b * shape[1] + int64_t(number) * own) * inner + i, *shards[rank],
                         b * own * inner + i);
  return full;
}

/// The inverse for one shard.
static Tensor partOf(const Tensor &full, int64_t number, Type type) {
  Tensor part(cast<RankedTensorType>(type));
  int64_t inner = 1, own = part.shape[1];
  for (int64_t size : ArrayRef(part.shape).drop_front(2))
    inner *= size;
  for (int64_t b = 0; b < part.shape[0]; ++b)
    for (int64_t i = 0; i < own * inner; ++i)
      part.copyElement(b * own * inner + i, full, (b * full.shape[1] + number * own) * inner + i);
  return part;
}

/// Calls the kernel for each rank. In a ring it gets the keys and values of all ranks, and the results of `ofKeys`
/// are summed over the ranks, each of which then takes those of its own keys.
template <typename Op, typename Kernel>
static LogicalResult onRing(Execution &execution, Op op, ArrayRef<RankTensors> in,
                            MutableArrayRef<RankTensors> out, ArrayRef<unsigned> ofKeys,
                            Kernel kernel) {
  auto results = [&](SmallVectorImpl<Tensor> &made) {
    for (Type type : op->getResultTypes())
      made.emplace_back(cast<RankedTensorType>(type));
  };
  if (!op.getRing())
    return onDistinctRanks(
        in, out, execution.rankCount(), [&](Inputs inputs, SmallVectorImpl<Tensor> &made) {
          results(made);
          return kernel(op, inputs, made, Positions::full(*inputs[0], *inputs[1]));
        });
  int64_t ranks = execution.rankCount();
  std::vector<SmallVector<Tensor>> sums(ranks);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    SmallVector<int64_t> group = execution.mesh().group(rank, *op.getRing());
    SmallVector<const Tensor *> inputs;
    for (const RankTensors &operand : in)
      inputs.push_back(operand[rank].get());
    int64_t s = inputs[0]->shape[1], number = execution.mesh().coordinate(rank, *op.getRing());
    bool isSplit = !par::Layout::of(op.getQ().getType()).splits[1].empty();
    if (!isSplit)
      group = {rank}, number = 0;
    Tensor k = joined(in[1], group, true), v = joined(in[2], group, true);
    inputs[1] = &k;
    inputs[2] = &v;
    Positions at = Positions::full(*inputs[0], k);
    at.queries = Positions::run(number * s, s);
    at.s = s * int64_t(group.size());
    SmallVector<Tensor> made;
    results(made);
    for (unsigned result : ofKeys)
      made[result] = Tensor(result == 1 ? k.shape : v.shape, true);
    if (failed(kernel(op, inputs, made, at)))
      return failure();
    sums[rank] = std::move(made);
  }
  for (int64_t rank = 0; rank < ranks; ++rank)
    for (unsigned i = 0; i < op->getNumResults(); ++i) {
      if (!llvm::is_contained(ofKeys, i)) {
        out[i].push_back(std::make_shared<Tensor>(sums[rank][i]));
        continue;
      }
      int64_t number = execution.mesh().coordinate(rank, *op.getRing());
      SmallVector<int64_t> group = execution.mesh().group(rank, *op.getRing());
      if (par::Layout::of(op.getQ().getType()).splits[1].empty())
        group = {rank}, number = 0;
      Tensor sum = sums[group.front()][i];
      for (int64_t other : ArrayRef(group).drop_front())
        sum.add(sums[other][i]);
      out[i].push_back(std::make_shared<Tensor>(partOf(sum, number, op->getResult(i).getType())));
    }
  return success();
}

//===------------------------------------------------------------------------------------------===//
// Steps of a ring
//===------------------------------------------------------------------------------------------===//

/// Where a step's operand stands; -1 if there is none.
static int indexOf(Operation *op, Value operand) {
  for (auto [i, value] : llvm::enumerate(op->getOperands()))
    if (operand && value == operand)
      return static_cast<int>(i);
  return -1;
}

template <typename Op> static Positions positionsOf(Op op, Inputs in) {
  Positions at;
  at.queries = Positions::runs(*in[indexOf(op, op.getFirstQuery())], in[0]->shape[1]);
  at.keys = Positions::runs(*in[indexOf(op, op.getFirstKey())], in[1]->shape[1]);
  at.s = par::Layout::of(op.getQ().getType()).shape[1];
  at.t = par::Layout::of(op.getK().getType()).shape[1];
  return at;
}

static LogicalResult attentionStep(tx::AttentionStepOp op, Inputs in, Outputs out) {
  Extras extras(op, in);
  Positions at = positionsOf(op, in);
  int before = indexOf(op, op.getOutBefore()), lseBefore = indexOf(op, op.getLseBefore());
  int64_t heads = in[0]->shape[2], s = in[0]->shape[1];
  for (int64_t b = 0; b < in[0]->shape[0]; ++b)
    for (int64_t h = 0; h < heads; ++h) {
      Scores scores = scoresOf(op, *in[0], *in[1], extras, at, b, h);
      Matrix &p = scores.values, kept = factors(op, extras, at, b, h, heads);
      Matrix sum = before < 0 ? Matrix(s, out[0].shape[3]) : headOf(*in[before], b, h);
      for (int64_t i = 0; i < p.rows; ++i) {
        int64_t row = (b * heads + h) * s + i;
        double old = lseBefore < 0 ? -INFINITY : in[lseBefore]->reals[row];
        double largest = std::max(old, scores.largest(i)), total = 0;
        if (largest != -INFINITY) {
          total = old == -INFINITY ? 0 : std::exp(old - largest);
          for (int64_t j = 0; j < p.columns; ++j)
            if (scores.sees(i, j))
              total += std::exp(p.at(i, j) - largest);
        }
        double lse = largest == -INFINITY ? -INFINITY : largest + std::log(total);
        for (int64_t j = 0; j < p.columns; ++j)
          p.at(i, j) = scores.sees(i, j) && lse != -INFINITY
                           ? std::exp(p.at(i, j) - lse) * kept.at(i, j)
                           : 0;
        for (int64_t d = 0; d < sum.columns; ++d)
          sum.at(i, d) *= old == -INFINITY ? 0 : std::exp(old - lse);
        out[1].reals[row] = lse;
      }
      addHead(out[0], b, h, sum);
      addHead(out[0], b, h, p * headOf(*in[2], b, keyHead(*in[0], *in[1], h)));
    }
  return success();
}

/// From lse and out of all steps: P = exp(score - lse), and the sum of dout out.
static LogicalResult attentionStepGrad(tx::AttentionStepGradOp op, Inputs in, Outputs out) {
  Extras extras(op, in);
  Positions at = positionsOf(op, in);
  int64_t heads = in[0]->shape[2], s = in[0]->shape[1];
  Value sums[] = {op.getDqBefore(), op.getDkBefore(), op.getDvBefore()};
  for (auto [i, before] : llvm::enumerate(sums))
    if (int number = indexOf(op, before); number >= 0)
      out[i].add(*in[number]);
  for (int64_t b = 0; b < in[0]->shape[0]; ++b)
    for (int64_t h = 0; h < heads; ++h) {
      Scores scores = scoresOf(op, *in[0], *in[1], extras, at, b, h);
      Matrix &p = scores.values;
      for (int64_t i = 0; i < p.rows; ++i)
        for (int64_t j = 0; j < p.columns; ++j) {
          double lse = in[4]->reals[(b * heads + h) * s + i];
          p.at(i, j) = scores.sees(i, j) && lse != -INFINITY ? std::exp(p.at(i, j) - lse) : 0;
        }
      Matrix result = headOf(*in[3], b, h), dout = headOf(*in[5], b, h);
      auto rowSum = [&](int64_t i, const Matrix &) {
        double dot = 0;
        for (int64_t d = 0; d < result.columns; ++d)
          dot += result.at(i, d) * dout.at(i, d);
        return dot;
      };
      addGradients(op, in, *in[5], out, extras, at, b, h, p, factors(op, extras, at, b, h, heads),
                   rowSum);
    }
  return success();
}

static LogicalResult documentStarts(tx::DocumentStartsOp op, Inputs in, Outputs out) {
  int64_t width = in[0]->dim(-1);
  for (int64_t row = 0; row < in[0]->leading(1); ++row) {
    llvm::SmallDenseSet<int64_t> seen;
    int64_t start = 0;
    for (int64_t i = 0; i < width; ++i) {
      int64_t id = in[0]->ints[row * width + i];
      if (op.getAfter())
        start = i > 0 && in[0]->ints[row * width + i - 1] == op.getAfter() ? i : start;
      else if (i == 0 || id != in[0]->ints[row * width + i - 1]) {
        start = i;
        if (!seen.insert(id).second)
          return op.emitError() << "id " << id << " of sequence " << row
                                << " comes back at position " << i << ", after another document";
      }
      out[0].ints[row * width + i] = start;
    }
  }
  return success();
}

static LogicalResult rotateHalf(tx::RotateHalfOp op, Inputs in, Outputs out) {
  int64_t n = in[0]->dim(-1);
  for (int64_t row = 0; row < in[0]->leading(1); ++row)
    for (int64_t i = 0; i < n / 2; ++i) {
      int64_t a = row * n + (op.getInterleaved() ? 2 * i : i),
              b = row * n + (op.getInterleaved() ? 2 * i + 1 : i + n / 2);
      out[0].reals[a] = -in[0]->reals[b];
      out[0].reals[b] = in[0]->reals[a];
    }
  return success();
}

/// x cos + R x sin, or with `back` x cos + R^T (x sin): R has row a -> -b, b -> a.
static LogicalResult rotary(tx::RotaryOp op, Inputs in, Outputs out) {
  const auto &x = in[0]->reals, &cos = in[1]->reals, &sin = in[2]->reals;
  int64_t n = in[0]->dim(-1);
  for (int64_t row = 0; row < in[0]->leading(1); ++row)
    for (int64_t i = 0; i < n / 2; ++i) {
      int64_t a = row * n + (op.getInterleaved() ? 2 * i : i),
              b = row * n + (op.getInterleaved() ? 2 * i + 1 : i + n / 2);
      bool back = op.getBack();
      out[0].reals[a] = x[a] * cos[a] + (back ? x[b] * sin[b] : -x[b] * sin[a]);
      out[0].reals[b] = x[b] * cos[b] + (back ? -x[a] * sin[a] : x[a] * sin[b]);
    }
  return success();
}

void partita::interp::addAttentionKernels(KernelTable &table) {
  table.addRanks<tx::AttentionOp>([](Execution &execution, tx::AttentionOp op,
                                     ArrayRef<RankTensors> in, MutableArrayRef<RankTensors> out) {
    return onRing(execution, op, in, out, {}, attention);
  });
  table.addRanks<tx::AttentionGradOp>([](Execution &execution, tx::AttentionGradOp op,
                                         ArrayRef<RankTensors> in,
                                         MutableArrayRef<RankTensors> out) {
    return onRing(execution, op, in, out, {1, 2}, attentionGrad);
  });
  table.add<tx::AttentionStepOp>(attentionStep);
  table.add<tx::AttentionStepGradOp>(attentionStepGrad);
  table.add<tx::DocumentStartsOp>(documentStarts);
  table.add<tx::RotateHalfOp>(rotateHalf);
  table.add<tx::RotaryOp>(rotary);
}
