//===- Fp8.cpp - quantization, and matmuls in 8 bits ------------------------------------------===//

#include "dialects/Amp/Amp.h"
#include "dialects/Tx/Tx.h"
#include "partita/Lower/Lowering.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

namespace {

/// Returns a pointer to one number of a vector.
Value elementOf(Lowering &l, Value vector, uint64_t number) {
  Value buffer = l.buffer(vector);
  if (number == 0)
    return buffer;
  return l.create<OffsetOp>(buffer.getType(), buffer, static_cast<int64_t>(number));
}

struct NoMaxima : KernelInterface::ExternalModel<NoMaxima, amp::NoMaximaOp> {
  StringRef resultName(Operation *, unsigned) const { return "maxima"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    if (const Target &target = Target::of(op); target.queuesWork())
      return op->emitOpError() << "has no kernel for target " << target.getName()
                               << " yet: --precision fp8 is for CPUs; use bfloat16";
    l.create<FillOp>(l.result(0), APFloat(0.0), l.elements(op->getResult(0)));
    return success();
  }
};

struct Quantize : KernelInterface::ExternalModel<Quantize, amp::QuantizeOp> {
  SmallVector<unsigned> inPlaceOperands(Operation *op, unsigned result) const {
    return result == 1 ? SmallVector<unsigned>{2} : SmallVector<unsigned>{};
  }
  StringRef resultName(Operation *, unsigned result) const {
    return result == 1 ? "maxima" : "quantized";
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
    if (l.type(quantize.getResult()).getElementType() == quantize.getStored())
      l.create<rt::QuantizeOp>(l.result(0), l.buffer(x), scale, max, l.elements(x));
    else
      l.create<rt::ThroughFp8Op>(l.result(0), l.buffer(x), scale, max,
                                 isa<Float8E5M2Type>(quantize.getStored()) ? "E5M2" : "E4M3",
                                 l.elements(x));
    return success();
  }
};

template <typename Op, bool transA, bool transB>
struct ScaledGemm : KernelInterface::ExternalModel<ScaledGemm<Op, transA, transB>, Op> {
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto matmul = cast<Op>(op);
    Value a = matmul.getA(), c = matmul.getResult();
    int64_t n = l.type(c).getShape().back(), m = l.elements(c) / n, k = l.elements(a) / m;
    Value result = l.result(0), scaleA = elementOf(l, matmul.getScales(), matmul.getNumberA()),
          scaleB = elementOf(l, matmul.getScales(), matmul.getNumberB());
    l.create<ScaledGemmOp>(result, l.buffer(a), scaleA, l.buffer(matmul.getB()), scaleB, transA,
                           transB, m, n, k);
    return success();
  }
};

} // namespace

void rt::attachFp8Kernels(MLIRContext *context) {
  amp::NoMaximaOp::attachInterface<NoMaxima>(*context);
  amp::QuantizeOp::attachInterface<Quantize>(*context);
  tx::ScaledMatMulOp::attachInterface<ScaledGemm<tx::ScaledMatMulOp, false, false>>(*context);
  tx::ScaledMatMulNTOp::attachInterface<ScaledGemm<tx::ScaledMatMulNTOp, false, true>>(*context);
  tx::ScaledMatMulTNOp::attachInterface<ScaledGemm<tx::ScaledMatMulTNOp, true, false>>(*context);
}
