//===- Attention.cpp - attention on any layout of heads ---------------------------------------===//

#include "dialects/Par/Placement.h"
#include "dialects/Tx/Tx.h"
#include "partita/Lower/Lowering.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

namespace {

/// [b, s, h, d] with contiguous heads, whatever the other strides: inside a packed projection too.
bool isHeads(const View &view) {
  return view.shape.size() == 4 && (view.strides[3] == 1 || view.shape[3] == 1) &&
         llvm::all_of(ArrayRef(view.strides).drop_back(),
                      [](int64_t stride) { return stride > 0; });
}

void appendStrides(SmallVector<int64_t> &strides, const View &view) {
  strides.append({view.strides[0], view.strides[1], view.strides[2]});
}

/// Zero along the dimensions that the bias repeats along; a row that repeats has no column stride.
void appendBiasStrides(SmallVector<int64_t> &strides, Value bias) {
  if (!bias)
    return;
  ArrayRef<int64_t> shape = cast<RankedTensorType>(bias.getType()).getShape();
  View dense = View::dense(shape);
  for (auto [size, stride] : llvm::zip(shape, dense.strides))
    strides.push_back(size == 1 ? 0 : stride);
}

Value bufferOrNull(Lowering &l, Value tensor) { return tensor ? l.buffer(tensor) : Value(); }

SmallVector<int64_t> shapeOf(RankedTensorType q, RankedTensorType k, RankedTensorType v) {
  return {q.getDimSize(0),
          q.getDimSize(2),
          q.getDimSize(1),
          k.getDimSize(1),
          q.getDimSize(3),
          v.getDimSize(3),
          q.getDimSize(2) / k.getDimSize(2)};
}

/// The shape of the probabilities of a micro-batch over all ranks, which number dropout's elements, with these
/// lengths of the full sequences; null without dropout.
template <typename Op>
DenseI64ArrayAttr probabilitiesOf(Op op, Lowering &l, ArrayRef<int64_t> lengths) {
  if (!op.getKey() || op.getFullShape())
    return op.getFullShapeAttr();
  RankedTensorType q = l.type(op.getQ());
  return DenseI64ArrayAttr::get(op.getContext(),
                                {q.getDimSize(0), q.getDimSize(2), lengths[0], lengths[1]});
}
/// Of an attention of full sequences.
template <typename Op> DenseI64ArrayAttr probabilitiesOf(Op op, Lowering &l) {
  return probabilitiesOf(op, l, {l.type(op.getQ()).getDimSize(1), l.type(op.getK()).getDimSize(1)});
}

/// A dropout without a key drops nothing, hence is none of a program with steps.
template <typename Op> LogicalResult checkKey(Op op) {
  if (op.getRatio() && !op.getKey())
    return op.emitOpError() << "has dropout without a key; run key-dropout first";
  return success();
}

/// The function that returns the layouts of an attention's blocks, null if it has none.
template <typename Op> FlatSymbolRefAttr layoutsOf(Op op, Lowering &l) {
  tx::BlocksAttr blocks = op.getBlocksAttr();
  if (!blocks)
    return {};
  OpBuilder atTop(l.shared.module.getBody(), l.shared.module.getBody()->begin());
  auto layouts = BlockLayoutsOp::create(atTop, atTop.getUnknownLoc(), "layouts", blocks,
                                        par::Layout::of(op.getQ().getType()).shape[1]);
  return l.shared.kernel(layouts, "attention_blocks");
}

/// Operands q, k, v; results out, lse.
template <typename Model, typename Op>
struct ForwardKernel : KernelInterface::ExternalModel<Model, Op> {
  bool acceptsOperand(Operation *, unsigned operand, const View &view) const {
    return operand < 3 && isHeads(view);
  }
  bool acceptsResult(Operation *, unsigned result, const View &view) const {
    return result == 0 && isHeads(view);
  }
  StringRef resultName(Operation *, unsigned result) const { return result == 0 ? "" : "lse"; }
};
/// Operands q, k, v, out, lse, dout; results dq, dk, dv, then dbias if there is a bias, then sums of rows.
template <typename Model, typename Op>
struct BackwardKernel : KernelInterface::ExternalModel<Model, Op> {
  bool acceptsOperand(Operation *, unsigned operand, const View &view) const {
    return operand != 4 && operand < 6 && isHeads(view);
  }
  bool acceptsResult(Operation *, unsigned result, const View &view) const {
    return result < 3 ? isHeads(view) : view.isDense();
  }
  StringRef resultName(Operation *op, unsigned result) const {
    unsigned given = result < 3 || cast<Op>(op).getBias() ? result : result + 1;
    return ArrayRef<StringRef>{"dq", "dk", "dv", "dbias", "dq_sums", "dk_sums", "dv_sums"}[given];
  }
  bool needsResult(Operation *, unsigned result) const { return result < 3; }
};

struct Attention : ForwardKernel<Attention, tx::AttentionOp> {
  bool needsResult(Operation *, unsigned result) const { return result == 0; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto attention = cast<tx::AttentionOp>(op);
    if (failed(checkKey(attention)))
      return failure();
    SmallVector<int64_t> strides;
    for (Value tensor : {attention.getOut(), attention.getQ(), attention.getK(), attention.getV()})
      appendStrides(strides, l.view(tensor));
    Value bias = attention.getBias();
    appendBiasStrides(strides, bias);
    l.create<AttentionForwardOp>(
        l.result(0), l.resultOrNull(1), l.operand(0), l.operand(1), l.operand(2),
        bufferOrNull(l, bias), bufferOrNull(l, attention.getFirstKeys()),
        bufferOrNull(l, attention.getFirstHead()), bufferOrNull(l, attention.getKey()),
        bufferOrNull(l, attention.getMicro()), bufferOrNull(l, attention.getFirst()), strides,
        shapeOf(l.type(attention.getQ()), l.type(attention.getK()), l.type(attention.getV())),
        attention.getCausal(), attention.getScale(), attention.getWindow().value_or(0),
        attention.getZeroHidden(), attention.getRatioAttr(), attention.getIdAttr(),
        probabilitiesOf(attention, l), layoutsOf(attention, l));
    return success();
  }
};

struct AttentionGrad : BackwardKernel<AttentionGrad, tx::AttentionGradOp> {
  static int64_t kernelWorkspace(Operation *op) {
    auto grad = cast<tx::AttentionGradOp>(op);
    RankedTensorType q = grad.getQ().getType(), k = grad.getK().getType();
    bool plain = !grad.getBias() && !grad.getBlocks() &&
                 q.getDimSize(3) == grad.getV().getType().getDimSize(3);
    return Target::of(op).getAttentionGradWorkspace(
        {/*queries=*/grad.getLse().getType().getNumElements(), /*sequence=*/q.getDimSize(1),
         /*keySequence=*/k.getDimSize(1), /*headDim=*/q.getDimSize(3),
         /*groups=*/q.getDimSize(2) / k.getDimSize(2), /*isFloat=*/q.getElementType().isF32(),
         plain});
  }
  /// The kernel adds the bias's gradient up in float; one of 16 bits has its sums after the
  /// kernel's workspace.
  static bool hasBiasSums(tx::AttentionGradOp grad) {
    auto dbias = grad.getDbias();
    return dbias && !dbias.use_empty() && !dbias.getType().getElementType().isF32();
  }
  int64_t workspaceElements(Operation *op) const {
    auto grad = cast<tx::AttentionGradOp>(op);
    return kernelWorkspace(op) +
           (hasBiasSums(grad) ? grad.getDbias().getType().getNumElements() : 0);
  }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto grad = cast<tx::AttentionGradOp>(op);
    if (failed(checkKey(grad)))
      return failure();
    SmallVector<int64_t> strides;
    for (Value tensor : {grad.getDq(), grad.getDk(), grad.getDv(), grad.getDout(), grad.getOut(),
                         grad.getQ(), grad.getK(), grad.getV()})
      appendStrides(strides, l.view(tensor));
    Value bias = grad.getBias();
    appendBiasStrides(strides, bias);
    Value dbias = bias ? l.resultOrNull(3) : Value(), biasSums = dbias;
    if (hasBiasSums(grad))
      biasSums = l.scratch(kernelWorkspace(op), "dbias_sums");
    SmallVector<Value> sums(3);
    for (auto [sum, result] : llvm::zip(sums, grad.getRowSums()))
      sum = l.resultOrNull(result.getResultNumber());
    l.create<AttentionBackwardOp>(
        l.result(0), l.result(1), l.result(2), biasSums, sums[0], sums[1], sums[2], l.scratch(),
        l.buffer(grad.getDout()), l.buffer(grad.getOut()), l.buffer(grad.getLse()), l.operand(0),
        l.operand(1), l.operand(2), bufferOrNull(l, bias), bufferOrNull(l, grad.getFirstKeys()),
        bufferOrNull(l, grad.getFirstHead()), bufferOrNull(l, grad.getKey()),
        bufferOrNull(l, grad.getMicro()), bufferOrNull(l, grad.getFirst()), strides,
        shapeOf(l.type(grad.getQ()), l.type(grad.getK()), l.type(grad.getV())), grad.getCausal(),
        grad.getScale(), grad.getWindow().value_or(0), grad.getZeroHidden(), grad.getRatioAttr(),
        grad.getIdAttr(), probabilitiesOf(grad, l), layoutsOf(grad, l));
    if (biasSums != dbias)
      l.convert(dbias, biasSums, l.elements(grad.getDbias()));
    return success();
  }
};

//===- Steps of a ring

/// Lengths of the full sequences, of queries and of keys.
template <typename Op> SmallVector<int64_t> fullLengths(Op op) {
  return {par::Layout::of(op.getQ().getType()).shape[1],
          par::Layout::of(op.getK().getType()).shape[1]};
}
/// In how many runs a rank has a part of each.
template <typename Op> SmallVector<int64_t> runsOf(Op op) {
  return {op.getFirstQuery().getType().getNumElements(),
          op.getFirstKey().getType().getNumElements()};
}

/// Puts what a result continues from into its place, unless it is there.
void continueFrom(Lowering &l, Value before, Value result) {
  if (before && !l.samePlace(before, result))
    l.copy(l.buffer(result), l.view(result), before);
}

struct AttentionStep : ForwardKernel<AttentionStep, tx::AttentionStepOp> {
  SmallVector<unsigned> inPlaceOperands(Operation *op, unsigned result) const {
    return cast<tx::AttentionStepOp>(op).getOutBefore() ? SmallVector<unsigned>{3 + result}
                                                        : SmallVector<unsigned>();
  }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto step = cast<tx::AttentionStepOp>(op);
    if (failed(checkKey(step)))
      return failure();
    continueFrom(l, step.getOutBefore(), step.getOut());
    continueFrom(l, step.getLseBefore(), step.getLse());
    SmallVector<int64_t> strides;
    for (Value tensor : {step.getOut(), step.getQ(), step.getK(), step.getV()})
      appendStrides(strides, l.view(tensor));
    appendBiasStrides(strides, step.getBias());
    l.create<rt::AttentionStepOp>(
        l.result(0), l.result(1), l.operand(0), l.operand(1), l.operand(2),
        bufferOrNull(l, step.getBias()), bufferOrNull(l, step.getFirstKeys()),
        bufferOrNull(l, step.getFirstHead()), bufferOrNull(l, step.getKey()),
        bufferOrNull(l, step.getMicro()), bufferOrNull(l, step.getFirst()),
        l.buffer(step.getFirstQuery()), l.buffer(step.getFirstKey()), strides,
        shapeOf(l.type(step.getQ()), l.type(step.getK()), l.type(step.getV())), step.getCausal(),
        step.getScale(), step.getWindow().value_or(0), step.getZeroHidden(), step.getRatioAttr(),
        step.getIdAttr(), probabilitiesOf(step, l, fullLengths(step)), fullLengths(step),
        runsOf(step), step.getOutBefore() != nullptr, layoutsOf(step, l));
    return success();
  }
};

struct AttentionStepGrad : BackwardKernel<AttentionStepGrad, tx::AttentionStepGradOp> {
  SmallVector<unsigned> inPlaceOperands(Operation *op, unsigned result) const {
    auto grad = cast<tx::AttentionStepGradOp>(op);
    if (result == 0 && grad.getDqBefore())
      return {6};
    return {};
  }
  int64_t workspaceElements(Operation *op) const {
    auto grad = cast<tx::AttentionStepGradOp>(op);
    return Target::of(op).getAttentionStepWorkspace(grad.getLse().getType().getNumElements());
  }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto grad = cast<tx::AttentionStepGradOp>(op);
    if (failed(checkKey(grad)))
      return failure();
    continueFrom(l, grad.getDqBefore(), grad.getDq());
    SmallVector<int64_t> strides;
    for (Value tensor : {grad.getDq(), grad.getDk(), grad.getDv(), grad.getDout(), grad.getOut(),
                         grad.getQ(), grad.getK(), grad.getV()})
      appendStrides(strides, l.view(tensor));
    appendBiasStrides(strides, grad.getBias());
    Value dbias = grad.getDbias() ? l.resultOrNull(3) : Value();
    if (dbias)
      l.create<FillOp>(dbias, APFloat(0.0), l.elements(grad.getDbias()));
    l.create<rt::AttentionStepBackwardOp>(
        l.result(0), l.result(1), l.result(2), dbias, l.scratch(), l.buffer(grad.getDout()),
        l.buffer(grad.getOut()), l.buffer(grad.getLse()), l.operand(0), l.operand(1), l.operand(2),
        bufferOrNull(l, grad.getBias()), bufferOrNull(l, grad.getFirstKeys()),
        bufferOrNull(l, grad.getFirstHead()), bufferOrNull(l, grad.getKey()),
        bufferOrNull(l, grad.getMicro()), bufferOrNull(l, grad.getFirst()),
        l.buffer(grad.getFirstQuery()), l.buffer(grad.getFirstKey()), strides,
        shapeOf(l.type(grad.getQ()), l.type(grad.getK()), l.type(grad.getV())), grad.getCausal(),
        grad.getScale(), grad.getWindow().value_or(0), grad.getZeroHidden(), grad.getRatioAttr(),
        grad.getIdAttr(), probabilitiesOf(grad, l, fullLengths(grad)), fullLengths(grad),
        runsOf(grad), grad.getDqBefore() != nullptr, layoutsOf(grad, l));
    return success();
  }
};

struct DocumentStarts : KernelInterface::ExternalModel<DocumentStarts, tx::DocumentStartsOp> {
  LogicalResult lower(Operation *op, Lowering &l) const {
    int64_t width = l.type(op->getResult(0)).getShape().back();
    int64_t rows = width ? l.elements(op->getResult(0)) / width : 0;
    if (std::optional<int64_t> after = cast<tx::DocumentStartsOp>(op).getAfter())
      l.create<rt::DocumentStartsAfterOp>(*after, l.result(0), l.operand(0), rows, width);
    else
      l.create<rt::DocumentStartsOp>(l.result(0), l.operand(0), rows, width);
    return success();
  }
};

struct RotateHalf : KernelInterface::ExternalModel<RotateHalf, tx::RotateHalfOp> {
  LogicalResult lower(Operation *op, Lowering &l) const {
    int64_t width = l.type(op->getResult(0)).getShape().back();
    l.create<rt::RotateHalfOp>(l.result(0), l.operand(0), l.elements(op->getResult(0)) / width,
                               width, cast<tx::RotateHalfOp>(op).getInterleaved());
    return success();
  }
};

/// Rows may lie anywhere, and angles repeat.
struct Rotary : KernelInterface::ExternalModel<Rotary, tx::RotaryOp> {
  static bool hasRows(const View &view) {
    return view.strides.back() == 1 || view.shape.back() == 1;
  }
  bool acceptsOperand(Operation *, unsigned, const View &view) const { return hasRows(view); }
  bool acceptsResult(Operation *, unsigned, const View &view) const { return hasRows(view); }
  SmallVector<unsigned> inPlaceOperands(Operation *, unsigned) const { return {0}; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto rotary = cast<tx::RotaryOp>(op);
    SmallVector<int64_t> strides;
    for (Value tensor : {rotary.getResult(), rotary.getX(), rotary.getCos(), rotary.getSin()})
      llvm::append_range(strides, l.view(tensor).strides);
    l.create<rt::RotaryOp>(l.result(0), l.operand(0), l.operand(1), l.operand(2), strides,
                           l.type(rotary.getX()).getShape(), rotary.getInterleaved(),
                           rotary.getBack());
    return success();
  }
};

} // namespace

void rt::attachAttentionKernels(MLIRContext *context) {
  tx::AttentionOp::attachInterface<Attention>(*context);
  tx::AttentionGradOp::attachInterface<AttentionGrad>(*context);
  tx::AttentionStepOp::attachInterface<AttentionStep>(*context);
  tx::AttentionStepGradOp::attachInterface<AttentionStepGrad>(*context);
  tx::DocumentStartsOp::attachInterface<DocumentStarts>(*context);
  tx::RotateHalfOp::attachInterface<RotateHalf>(*context);
  tx::RotaryOp::attachInterface<Rotary>(*context);
}
