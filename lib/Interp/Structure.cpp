//===- Structure.cpp - kernels of constants, shapes and reductions ----------------------------===//

#include "dialects/Tx/Tx.h"
#include "lib/Interp/Execution.h"

using namespace mlir;
using namespace partita;
using namespace partita::interp;

static LogicalResult constant(tx::ConstantOp op, Inputs, Outputs out) {
  ElementsAttr value = op.getValue();
  if (isa<FloatType>(value.getElementType())) {
    if (auto numbers = value.tryGetValues<APFloat>()) {
      for (auto [i, number] : llvm::enumerate(*numbers)) {
        bool losesInfo = false;
        APFloat wide = number;
        wide.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
        out[0].reals[i] = wide.convertToDouble();
      }
      return success();
    }
  } else if (auto numbers = value.tryGetValues<APInt>()) {
    for (auto [i, number] : llvm::enumerate(*numbers))
      out[0].ints[i] = number.getBitWidth() == 1 ? number.getZExtValue() : number.getSExtValue();
    return success();
  }
  return op.emitError() << "the interpreter cannot read this kind of constant";
}

static LogicalResult iota(tx::IotaOp op, Inputs, Outputs out) {
  for (int64_t i = 0; i < out[0].size(); ++i)
    out[0].setNumber(i, op.getStart().convertToDouble() + i * op.getStep().convertToDouble());
  return success();
}

static LogicalResult reshape(tx::ReshapeOp, Inputs in, Outputs out) {
  out[0].reals = in[0]->reals;
  out[0].ints = in[0]->ints;
  return success();
}

static LogicalResult transpose(tx::TransposeOp op, Inputs in, Outputs out) {
  SmallVector<int64_t> strides = rowMajorStrides(in[0]->shape), permuted;
  for (int64_t p : op.getPermutation())
    permuted.push_back(strides[p]);
  walk(out[0].shape, permuted, 0,
       [&](int64_t to, int64_t from) { out[0].copyElement(to, *in[0], from); });
  return success();
}

static LogicalResult broadcast(tx::BroadcastOp, Inputs in, Outputs out) {
  SmallVector<int64_t> strides = rowMajorStrides(in[0]->shape);
  size_t added = out[0].shape.size() - strides.size();
  for (auto [stride, from] : llvm::zip(strides, in[0]->shape))
    if (from == 1)
      stride = 0;
  strides.insert(strides.begin(), added, 0);
  walk(out[0].shape, strides, 0,
       [&](int64_t to, int64_t from) { out[0].copyElement(to, *in[0], from); });
  return success();
}

/// The position in a tensor of shape `big` of element 0 of a cut, and the strides between its
/// elements.
static std::pair<int64_t, SmallVector<int64_t>>
cutOf(ArrayRef<int64_t> big, ArrayRef<int64_t> offsets, ArrayRef<int64_t> steps) {
  SmallVector<int64_t> strides = rowMajorStrides(big);
  int64_t base = 0;
  for (auto [stride, offset, step] : llvm::zip(strides, offsets, steps)) {
    base += offset * stride;
    stride *= step;
  }
  return {base, strides};
}

static LogicalResult cut(ArrayRef<int64_t> offsets, ArrayRef<int64_t> steps, Inputs in,
                         Outputs out) {
  auto [base, strides] = cutOf(in[0]->shape, offsets, steps);
  walk(out[0].shape, strides, base,
       [&](int64_t to, int64_t from) { out[0].copyElement(to, *in[0], from); });
  return success();
}

static LogicalResult slice(tx::SliceOp op, Inputs in, Outputs out) {
  return cut(op.getOffsets(), op.getStrides(), in, out);
}

static LogicalResult chunk(par::ChunkOp op, Inputs in, Outputs out) {
  return cut(op.getOffsets(), SmallVector<int64_t>(out[0].shape.size(), 1), in, out);
}

static LogicalResult pad(tx::PadOp op, Inputs in, Outputs out) {
  auto [base, strides] = cutOf(out[0].shape, op.getOffsets(), op.getStrides());
  walk(in[0]->shape, strides, base,
       [&](int64_t from, int64_t to) { out[0].copyElement(to, *in[0], from); });
  return success();
}

/// Of tx.concat and par.join.
template <typename Op> static LogicalResult concat(Op op, Inputs in, Outputs out) {
  SmallVector<int64_t> strides = rowMajorStrides(out[0].shape);
  int64_t base = 0;
  for (const Tensor *part : in) {
    walk(part->shape, strides, base,
         [&](int64_t from, int64_t to) { out[0].copyElement(to, *part, from); });
    base += part->shape[op.getDim()] * strides[op.getDim()];
  }
  return success();
}

/// Calls f(position in `few`, position in `many`) for every element of `many`, or of the shard of
/// it that begins at `first`.
template <typename F>
static void forRepeated(const Tensor &few, const Tensor &many, int64_t dim, int64_t times,
                        int64_t first, F f) {
  int64_t inner = rowMajorStrides(many.shape)[dim], count = many.shape[dim];
  for (int64_t at = 0; at < many.size(); ++at) {
    int64_t outer = at / (inner * count), index = first + at / inner % count;
    f((outer * few.shape[dim] + index / times) * inner + at % inner, at);
  }
}

static LogicalResult repeat(tx::RepeatOp op, Inputs in, Outputs out) {
  forRepeated(*in[0], out[0], op.getDim(), op.getTimes(), in.size() > 1 ? in[1]->ints[0] : 0,
              [&](int64_t from, int64_t to) { out[0].reals[to] = in[0]->reals[from]; });
  return success();
}

static LogicalResult repeatSum(tx::RepeatSumOp op, Inputs in, Outputs out) {
  forRepeated(out[0], *in[0], op.getDim(), op.getTimes(), in.size() > 1 ? in[1]->ints[0] : 0,
              [&](int64_t to, int64_t from) { out[0].reals[to] += in[0]->reals[from]; });
  return success();
}

/// Calls f(position in the result, position in x) for every element of x.
template <typename F>
static void reduce(ArrayRef<int64_t> dims, const Tensor &x, const Tensor &result, F f) {
  SmallVector<int64_t> kept = rowMajorStrides(result.shape), strides(x.shape.size(), 0);
  auto next = kept.begin();
  for (size_t d = 0; d < x.shape.size(); ++d)
    if (!llvm::is_contained(dims, static_cast<int64_t>(d)))
      strides[d] = *next++;
  walk(x.shape, strides, 0, [&](int64_t from, int64_t to) { f(to, from); });
}

static LogicalResult reduceSum(tx::ReduceSumOp op, Inputs in, Outputs out) {
  reduce(op.getDims(), *in[0], out[0], [&](int64_t to, int64_t from) {
    out[0].isReal ? (void)(out[0].reals[to] += in[0]->reals[from])
                  : (void)(out[0].ints[to] += in[0]->ints[from]);
  });
  return success();
}

static LogicalResult reduceMean(tx::ReduceMeanOp op, Inputs in, Outputs out) {
  double count =
      static_cast<double>(in[0]->size()) / static_cast<double>(std::max<int64_t>(out[0].size(), 1));
  Tensor sum(out[0].shape, true);
  reduce(op.getDims(), *in[0], sum,
         [&](int64_t to, int64_t from) { sum.reals[to] += in[0]->number(from); });
  for (int64_t i = 0; i < sum.size(); ++i)
    out[0].setNumber(i, sum.reals[i] / count);
  return success();
}

static LogicalResult reduceMax(tx::ReduceMaxOp op, Inputs in, Outputs out) {
  if (in[0]->size() == 0 && out[0].size() != 0)
    return op.emitError() << "has no element to take the largest of";
  std::vector<bool> seen(out[0].size(), false);
  reduce(op.getDims(), *in[0], out[0], [&](int64_t to, int64_t from) {
    double value = in[0]->number(from);
    if (!seen[to] || value > out[0].number(to) || std::isnan(value))
      out[0].copyElement(to, *in[0], from);
    seen[to] = true;
  });
  return success();
}

void partita::interp::addStructureKernels(KernelTable &table) {
  table.add<tx::ConstantOp>(constant);
  table.add<tx::IotaOp>(iota);
  table.add<tx::ReshapeOp>(reshape);
  table.add<tx::TransposeOp>(transpose);
  table.add<tx::BroadcastOp>(broadcast);
  table.add<tx::SliceOp>(slice);
  table.add<tx::PadOp>(pad);
  table.add<tx::ConcatOp>(concat<tx::ConcatOp>);
  table.add<par::ChunkOp>(chunk);
  table.add<par::JoinOp>(concat<par::JoinOp>);
  table.add<tx::RepeatOp>(repeat);
  table.add<tx::RepeatSumOp>(repeatSum);
  table.add<tx::ReduceSumOp>(reduceSum);
  table.add<tx::ReduceMeanOp>(reduceMean);
  table.add<tx::ReduceMaxOp>(reduceMax);
}
