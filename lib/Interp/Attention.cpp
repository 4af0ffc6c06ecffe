//===- Attention.cpp - kernels of attention ---------------------------------------------------===//
//
// The backward pass computes the probabilities again from q and k: it trusts neither `out` nor `lse`. In a
// ring, a rank has the keys and values of all ranks, as if they were gathered.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Par/Placement.h"
#include "lib/Interp/AttentionMath.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace partita;
using namespace partita::interp;
using namespace partita::interp::attention;

static LogicalResult attend(tx::AttentionOp op, Inputs in, Outputs out, const Positions &at) {
  Extras extras(op, in);
  if (failed(checkVisible(op, at, extras.firstKeys)))
    return failure();
  int64_t heads = in[0]->shape[2], s = in[0]->shape[1];
  for (int64_t b = 0; b < in[0]->shape[0]; ++b)
    for (int64_t h = 0; h < heads; ++h) {
      Matrix p = probabilities(op, *in[0], *in[1], extras, at, b, h,
                               out[1].reals.data() + (b * heads + h) * s);
      p.scaleBy(factors(op, extras, at, b, h, heads));
      addHead(out[0], b, h, p * headOf(*in[2], b, keyHead(*in[0], *in[1], h)));
    }
  return success();
}

/// Adds up rows [batch, sequence, heads, width] over batch and sequence.
static void addRows(Tensor &sums, const Tensor &rows) {
  auto width = int64_t(sums.reals.size());
  for (int64_t i = 0; i < int64_t(rows.reals.size()); ++i)
    sums.reals[i % width] += rows.reals[i];
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
      auto rowSum = [&](int64_t i, const Matrix &dp) { return rowDot(p, dp, i); };
      addGradients(op, in, *in[5], out, extras, at, b, h, p, factors(op, extras, at, b, h, heads),
                   rowSum);
    }
  for (auto [i, sums] : llvm::enumerate(out.take_back(op.getRowSums().size())))
    addRows(sums, out[i]);
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

/// The ranks that have parts of a rank's sequences, and its own number among them. Sequences that are not split
/// are the rank's alone.
template <typename Op>
static std::pair<SmallVector<int64_t>, int64_t> ringOf(Execution &execution, Op op, int64_t rank) {
  if (par::Layout::of(op.getQ().getType()).splits[1].empty())
    return {{rank}, 0};
  return {execution.mesh().group(rank, *op.getRing()),
          execution.mesh().coordinate(rank, *op.getRing())};
}

/// The positions of a sequence that a rank of the ring holds, in order: several runs if the axis splits blocks of it.
static std::vector<int64_t> heldBy(TypedValue<RankedTensorType> value, StringAttr axis,
                                   int64_t rank, int64_t ranks, int64_t length) {
  par::Blocks blocks = par::Layout::of(value.getType()).blocksOf(axis);
  if (blocks.count == 0)
    return Positions::run(0, length);
  int64_t run = length / (blocks.count * ranks);
  std::vector<int64_t> result;
  for (int64_t block = 0; block < blocks.count; ++block)
    llvm::append_range(
        result, Positions::run((block * ranks + blocks.placeIn(block, rank, ranks)) * run, run));
  return result;
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
    auto [group, number] = ringOf(execution, op, rank);
    SmallVector<const Tensor *> inputs;
    for (const RankTensors &operand : in)
      inputs.push_back(operand[rank].get());
    int64_t s = inputs[0]->shape[1];
    Tensor k = joined(in[1], group, true), v = joined(in[2], group, true);
    inputs[1] = &k;
    inputs[2] = &v;
    Positions at = Positions::full(*inputs[0], k);
    at.s = s * int64_t(group.size());
    at.queries = heldBy(op.getQ(), op.getRingAttr(), number, int64_t(group.size()), at.s);
    at.keys.clear();
    for (size_t other = 0; other < group.size(); ++other)
      llvm::append_range(at.keys, heldBy(op.getK(), op.getRingAttr(), int64_t(other),
                                         int64_t(group.size()), at.t));
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
      auto [group, number] = ringOf(execution, op, rank);
      Tensor sum = sums[group.front()][i];
      for (int64_t other : ArrayRef(group).drop_front())
        sum.add(sums[other][i]);
      out[i].push_back(std::make_shared<Tensor>(partOf(sum, number, op->getResult(i).getType())));
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

void partita::interp::addAttentionKernels(KernelTable &table) {
  table.addRanks<tx::AttentionOp>(
      [](Execution &execution, tx::AttentionOp op, ArrayRef<RankTensors> in,
         MutableArrayRef<RankTensors> out) { return onRing(execution, op, in, out, {}, attend); });
  table.addRanks<tx::AttentionGradOp>([](Execution &execution, tx::AttentionGradOp op,
                                         ArrayRef<RankTensors> in,
                                         MutableArrayRef<RankTensors> out) {
    return onRing(execution, op, in, out, {1, 2}, attentionGrad);
  });
  table.add<tx::DocumentStartsOp>(documentStarts);
}
