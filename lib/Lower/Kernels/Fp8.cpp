//===- Fp8.cpp - quantization, and matmuls in 8 bits ------------------------------------------===//

#include "dialects/Amp/Amp.h"
#include "dialects/Tx/Tx.h"
#include "lib/Lower/Kernels/ScaledMatmul.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

namespace {

/// Returns a pointer to one row.
Value elementOf(Lowering &l, Value rows, uint64_t number) {
  Value buffer = l.buffer(rows);
  if (number == 0)
    return buffer;
  int64_t width = tx::scaleWidth(cast<TypedValue<RankedTensorType>>(rows));
  return l.create<OffsetOp>(buffer.getType(), buffer, static_cast<int64_t>(number) * width);
}

/// A module for another target, or a program that no pass made.
LogicalResult failUnsupported(Operation *op) {
  return op->emitOpError()
         << "has no kernel on the target '" << Target::of(op).getName()
         << "': `transpose-fp8` prepares 8-bit operands for a target; start again "
            "from a phase before 'fuse'";
}

struct NoMaxima : KernelInterface::ExternalModel<NoMaxima, amp::NoMaximaOp> {
  StringRef resultName(Operation *, unsigned) const { return "maxima"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    l.create<FillOp>(l.result(0), APFloat(0.0), l.elements(op->getResult(0)));
    return success();
  }
};

struct Quantize : KernelInterface::ExternalModel<Quantize, amp::QuantizeOp> {
  SmallVector<unsigned> inPlaceOperands(Operation *op, unsigned result) const {
    bool isRaised = op->getResult(result) == cast<amp::QuantizeOp>(op).getRaised();
    return isRaised ? SmallVector<unsigned>{2} : SmallVector<unsigned>{};
  }
  StringRef resultName(Operation *op, unsigned result) const {
    auto quantize = cast<amp::QuantizeOp>(op);
    Value value = op->getResult(result);
    return value == quantize.getRaised()    ? "maxima"
           : value == quantize.getColumns() ? "transposed"
           : value == quantize.getSums()    ? "sums"
                                            : "quantized";
  }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto quantize = cast<amp::QuantizeOp>(op);
    Value max, x = quantize.getX();
    if (Value before = quantize.getMaxima()) {
      if (!l.samePlace(before, quantize.getRaised()))
        l.copy(l.buffer(quantize.getRaised()), l.view(quantize.getRaised()), before);
      max = elementOf(l, quantize.getRaised(), quantize.getNumber());
    }
    Value scale = elementOf(l, quantize.getScales(), quantize.getNumber());
    Value rows = quantize.getRows(), columns = quantize.getColumns(), sums = quantize.getSums();
    if (columns) {
      if (!Target::of(op).multipliesRowsIn8Bits())
        return failUnsupported(op);
      int64_t width = l.type(x).getShape().back();
      l.create<rt::QuantizeTransposedOp>(rows ? l.buffer(rows) : Value(), l.buffer(columns),
                                         l.buffer(x), scale, max, sums ? l.buffer(sums) : Value(),
                                         l.elements(x) / width, width);
    } else if (l.type(rows).getElementType() == quantize.getStored()) {
      l.create<rt::QuantizeOp>(l.buffer(rows), l.buffer(x), scale, max, l.elements(x));
    } else {
      l.create<rt::ThroughFp8Op>(l.buffer(rows), l.buffer(x), scale, max,
                                 isa<Float8E5M2Type>(quantize.getStored()) ? "E5M2" : "E4M3",
                                 l.elements(x));
    }
    return success();
  }
};

/// Operands and result are dense.
template <typename Op> struct ScaledGemm : KernelInterface::ExternalModel<ScaledGemm<Op>, Op> {
  LogicalResult lower(Operation *op, Lowering &l) const {
    return lowerScaledMatmul(op, l, [](Value operand) { return operand; });
  }
};

} // namespace

LogicalResult rt::lowerScaledMatmul(Operation *matmul, Lowering &l,
                                    llvm::function_ref<Value(Value)> input, Value addend) {
  bool transA = isa<tx::ScaledMatMulTNOp>(matmul),
       transB = !isa<tx::ScaledMatMulTNOp, tx::ScaledMatMulOp, tx::ScaledMatMulBiasOp>(matmul);
  if ((transA || !transB) && Target::of(l.op).multipliesRowsIn8Bits())
    return failUnsupported(matmul);
  auto number = [&](StringRef name) {
    return static_cast<uint64_t>(matmul->getAttrOfType<IntegerAttr>(name).getInt());
  };
  Value a = input(matmul->getOperand(0)), b = input(matmul->getOperand(1)),
        scales = input(matmul->getOperand(2)), c = l.op->getResult(0);
  int64_t n = l.type(c).getShape().back(), m = l.elements(c) / n, k = l.elements(a) / m;
  Value result = l.buffer(c), scaleA = elementOf(l, scales, number("number_a")),
        scaleB = elementOf(l, scales, number("number_b"));
  Value bias = matmul->getNumOperands() > 3 ? l.buffer(input(matmul->getOperand(3))) : Value();
  l.create<ScaledGemmOp>(result, l.buffer(a), scaleA, l.buffer(b), scaleB, bias,
                         addend ? l.buffer(addend) : Value(), transA, transB, m, n, k);
  return success();
}

void rt::attachQuantization(MLIRContext *context) {
  amp::NoMaximaOp::attachInterface<NoMaxima>(*context);
  amp::QuantizeOp::attachInterface<Quantize>(*context);
}

void rt::attachScaledMatmuls(MLIRContext *context) {
  tx::ScaledMatMulOp::attachInterface<ScaledGemm<tx::ScaledMatMulOp>>(*context);
  tx::ScaledMatMulNTOp::attachInterface<ScaledGemm<tx::ScaledMatMulNTOp>>(*context);
  tx::ScaledMatMulTNOp::attachInterface<ScaledGemm<tx::ScaledMatMulTNOp>>(*context);
  tx::ScaledMatMulColumnsOp::attachInterface<ScaledGemm<tx::ScaledMatMulColumnsOp>>(*context);
  tx::ScaledMatMulBiasOp::attachInterface<ScaledGemm<tx::ScaledMatMulBiasOp>>(*context);
  tx::ScaledMatMulNTBiasOp::attachInterface<ScaledGemm<tx::ScaledMatMulNTBiasOp>>(*context);
}
