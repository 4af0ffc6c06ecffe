//===- Movement.cpp - constants, views and copies ---------------------------------------------===//
//
// A view that the planner found free is lowered to nothing; otherwise its lowering copies.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Interfaces/Floats.h"
#include "dialects/Par/Par.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "partita/Lower/Lowering.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

namespace {

/// What all views have in common: `Derived::viewOfOperand` says which view the result is.
template <typename Derived, typename Op>
struct ViewModel : KernelInterface::ExternalModel<Derived, Op> {
  /// As the source of a copy, anything will do.
  bool acceptsOperand(Operation *, unsigned, const View &) const { return true; }
  bool acceptsResult(Operation *, unsigned, const View &) const { return true; }

  LogicalResult lower(Operation *op, Lowering &l) const {
    Value operand = op->getOperand(0), result = op->getResult(0);
    AtAttr from = l.at(operand), to = l.at(result);
    const Derived &self = *static_cast<const Derived *>(this);
    std::optional<View> view = self.viewOfOperand(op, l.view(operand));
    if (view && from.getSpace() == to.getSpace() && l.view(result) == *view &&
        (from.getSpace() != Space::Input || from.getOffset() == to.getOffset()))
      return success(); // it is the operand's memory
    View source = view ? *view : l.view(operand);
    View target = view ? l.view(result) : View::dense(l.type(operand).getShape());
    int64_t bytes = elementBytes(l.type(result).getElementType());
    Value base = source.offset == l.view(operand).offset ? l.buffer(operand)
                                                         : elsewhere(op, l, source, bytes);
    return copyTo(op, l, base, source, target, bytes);
  }

private:
  /// A pointer to where the view begins within the operand's memory.
  static Value elsewhere(Operation *op, Lowering &l, const View &source, int64_t bytes) {
    Value operand = op->getOperand(0);
    int64_t shift = source.offset - l.view(operand).offset;
    return l.create<OffsetOp>(l.buffer(operand).getType(), l.buffer(operand), shift);
  }

  static LogicalResult copyTo(Operation *op, Lowering &l, Value base, const View &source,
                              const View &target, int64_t bytes) {
    std::optional<int64_t> from = source.rowStride(), to = target.rowStride();
    Value result = l.result(0);
    Type element = l.type(op->getResult(0)).getElementType();
    if (from && to && isa<FloatType>(element) && !element.isF64() && !isByteFloat(element)) {
      int64_t width = source.shape.back();
      l.create<CopyRowsOp>(result, base, *to, *from, source.elements() / width, width);
    } else {
      l.create<CopyOp>(result, base, target.strides, source.strides, source.shape, bytes);
    }
    return success();
  }
};

struct Reshape : ViewModel<Reshape, tx::ReshapeOp> {
  std::optional<View> viewOfOperand(Operation *op, const View &operand) const {
    return operand.reshape(cast<tx::ReshapeOp>(op).getType().getShape());
  }
};
struct Barrier : ViewModel<Barrier, train::BarrierOp> {
  std::optional<View> viewOfOperand(Operation *, const View &operand) const { return operand; }
};
struct Transpose : ViewModel<Transpose, tx::TransposeOp> {
  std::optional<View> viewOfOperand(Operation *op, const View &operand) const {
    return operand.transpose(cast<tx::TransposeOp>(op).getPermutation());
  }
};
struct Broadcast : ViewModel<Broadcast, tx::BroadcastOp> {
  std::optional<View> viewOfOperand(Operation *op, const View &operand) const {
    return operand.broadcast(cast<tx::BroadcastOp>(op).getType().getShape());
  }
};
struct Slice : ViewModel<Slice, tx::SliceOp> {
  std::optional<View> viewOfOperand(Operation *op, const View &operand) const {
    auto slice = cast<tx::SliceOp>(op);
    return operand.slice(slice.getOffsets(), slice.getStrides(), slice.getType().getShape());
  }
};

struct Chunk : ViewModel<Chunk, par::ChunkOp> {
  std::optional<View> viewOfOperand(Operation *op, const View &operand) const {
    auto chunk = cast<par::ChunkOp>(op);
    auto shape = cast<RankedTensorType>(chunk.getType()).getShape();
    return operand.slice(chunk.getOffsets(), SmallVector<int64_t>(shape.size(), 1), shape);
  }
};

struct Pad : KernelInterface::ExternalModel<Pad, tx::PadOp> {
  bool acceptsOperand(Operation *, unsigned, const View &) const { return true; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto pad = cast<tx::PadOp>(op);
    Value result = l.result(0);
    l.create<FillOp>(result, APFloat(0.0), l.elements(pad.getResult()));
    View target = View::dense(pad.getType().getShape())
                      .slice(pad.getOffsets(), pad.getStrides(), l.type(pad.getX()).getShape());
    Value place =
        target.offset ? Value(l.create<OffsetOp>(result.getType(), result, target.offset)) : result;
    l.copy(place, target, pad.getX());
    return success();
  }
};

/// tx.concat or par.join.
template <typename Op> struct Concat : KernelInterface::ExternalModel<Concat<Op>, Op> {
  bool acceptsOperand(Operation *, unsigned, const View &) const { return true; }
  std::optional<View> sliceOfResult(Operation *op, unsigned operand, const View &result) const {
    auto dim = static_cast<int64_t>(cast<Op>(op).getDim());
    auto shapeOf = [&](unsigned input) {
      return cast<RankedTensorType>(op->getOperand(input).getType()).getShape();
    };
    SmallVector<int64_t> offsets(result.shape.size(), 0), steps(result.shape.size(), 1);
    for (unsigned before = 0; before < operand; ++before)
      offsets[dim] += shapeOf(before)[dim];
    return result.slice(offsets, steps, shapeOf(operand));
  }
  LogicalResult lower(Operation *op, Lowering &l) const {
    View full = l.view(op->getResult(0));
    for (auto [i, input] : llvm::enumerate(op->getOperands())) {
      View slice = *sliceOfResult(op, i, full);
      if (l.at(input).getSpace() == l.at(op->getResult(0)).getSpace() && l.view(input) == slice)
        continue; // computed into place
      Value base = l.result(0);
      if (int64_t shift = slice.offset - full.offset)
        base = l.create<OffsetOp>(base.getType(), base, shift);
      l.copy(base, slice, input);
    }
    return success();
  }
};

/// The value of all elements, if they are equal and a double has it exactly.
std::optional<APFloat> splatOf(DenseElementsAttr value) {
  if (!value.isSplat())
    return std::nullopt;
  if (isa<FloatType>(value.getElementType()))
    return value.getSplatValue<APFloat>();
  APFloat number(APFloat::IEEEdouble());
  bool isSigned = !value.getElementType().isInteger(1);
  APFloat::opStatus status =
      number.convertFromAPInt(value.getSplatValue<APInt>(), isSigned, APFloat::rmNearestTiesToEven);
  return status == APFloat::opOK ? std::optional(number) : std::nullopt;
}

/// `Kernel` between x and its repetition, of which `many` is the dense type on a rank.
template <typename Kernel, typename Op>
LogicalResult lowerRepeated(Op op, Lowering &l, RankedTensorType few, RankedTensorType many) {
  ArrayRef<int64_t> shape = few.getShape();
  int64_t outer = 1, inner = 1, dim = op.getDim();
  for (int64_t size : shape.take_front(dim))
    outer *= size;
  for (int64_t size : shape.drop_front(dim + 1))
    inner *= size;
  l.create<Kernel>(l.result(0), l.operand(0), op.getFirst() ? l.operand(1) : Value(), outer,
                   shape[dim], op.getTimes(), many.getDimSize(dim), inner);
  return success();
}

struct Repeat : KernelInterface::ExternalModel<Repeat, tx::RepeatOp> {
  LogicalResult lower(Operation *op, Lowering &l) const {
    return lowerRepeated<rt::RepeatOp>(cast<tx::RepeatOp>(op), l, l.type(op->getOperand(0)),
                                       l.type(op->getResult(0)));
  }
};

struct RepeatSum : KernelInterface::ExternalModel<RepeatSum, tx::RepeatSumOp> {
  LogicalResult lower(Operation *op, Lowering &l) const {
    return lowerRepeated<rt::RepeatSumOp>(cast<tx::RepeatSumOp>(op), l, l.type(op->getResult(0)),
                                          l.type(op->getOperand(0)));
  }
};

struct Constant : KernelInterface::ExternalModel<Constant, tx::ConstantOp> {
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto constant = cast<tx::ConstantOp>(op);
    if (!l.hasMemory(constant.getResult()))
      return success();
    auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
    if (!dense)
      return op->emitOpError() << "has no elements to write into the program";
    if (dense.empty())
      return success(); // an output without elements: nothing to write
    auto type = BufferType::get(op->getContext(), constant.getType().getElementType());
    if (std::optional<APFloat> value = splatOf(dense)) {
      l.create<FillOp>(l.result(0), *value, l.elements(constant.getResult()));
      return success();
    }
    Value table = l.create<TableOp>(type, dense);
    View view = l.view(constant.getResult());
    l.create<CopyOp>(l.result(0), table, view.strides, View::dense(view.shape).strides, view.shape,
                     elementBytes(constant.getType().getElementType()));
    return success();
  }
};

struct Iota : KernelInterface::ExternalModel<Iota, tx::IotaOp> {
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto iota = cast<tx::IotaOp>(op);
    l.create<rt::IotaOp>(l.result(0), iota.getStart(), iota.getStep(),
                         l.elements(iota.getResult()));
    return success();
  }
};

} // namespace

void rt::attachMovementKernels(MLIRContext *context) {
  tx::ReshapeOp::attachInterface<Reshape>(*context);
  train::BarrierOp::attachInterface<Barrier>(*context);
  tx::TransposeOp::attachInterface<Transpose>(*context);
  tx::BroadcastOp::attachInterface<Broadcast>(*context);
  tx::SliceOp::attachInterface<Slice>(*context);
  tx::PadOp::attachInterface<Pad>(*context);
  tx::ConcatOp::attachInterface<Concat<tx::ConcatOp>>(*context);
  par::ChunkOp::attachInterface<Chunk>(*context);
  par::JoinOp::attachInterface<Concat<par::JoinOp>>(*context);
  tx::RepeatOp::attachInterface<Repeat>(*context);
  tx::RepeatSumOp::attachInterface<RepeatSum>(*context);
  tx::ConstantOp::attachInterface<Constant>(*context);
  tx::IotaOp::attachInterface<Iota>(*context);
}
