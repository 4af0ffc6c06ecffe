//===- Gemm.cpp - matmuls ---------------------------------------------------------------------===//

#include "dialects/Tx/Tx.h"
#include "partita/Lower/Lowering.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

namespace {

/// One gemm: the leading dimensions of `a` (and of `b` in matmul_tn) as one; operands and result
/// may have any stride between rows.
template <typename Op, bool TransA, bool TransB>
struct Gemm : KernelInterface::ExternalModel<Gemm<Op, TransA, TransB>, Op> {
  bool acceptsOperand(Operation *, unsigned, const View &view) const {
    return view.rowStride().has_value();
  }
  bool acceptsResult(Operation *, unsigned, const View &view) const {
    return view.rowStride().has_value();
  }

  LogicalResult lower(Operation *op, Lowering &l) const {
    auto shapeA = l.type(op->getOperand(0)).getShape();
    auto shapeC = l.type(op->getResult(0)).getShape();
    int64_t n = shapeC.back(), m = l.elements(op->getResult(0)) / n;
    int64_t k = TransA ? l.elements(op->getOperand(0)) / shapeA.back() : shapeA.back();
    l.create<GemmOp>(l.result(0), l.operand(0), l.operand(1), TransA, TransB, m, n, k,
                     *l.view(op->getOperand(0)).rowStride(), *l.view(op->getOperand(1)).rowStride(),
                     *l.view(op->getResult(0)).rowStride(), APFloat(0.0));
    return success();
  }
};

/// The same with a bias that the kernel adds to every row.
template <typename Op, bool TransB>
struct BiasedGemm : KernelInterface::ExternalModel<BiasedGemm<Op, TransB>, Op> {
  bool acceptsOperand(Operation *, unsigned operand, const View &view) const {
    return operand != 2 && view.rowStride().has_value();
  }
  bool acceptsResult(Operation *, unsigned, const View &view) const {
    return view.rowStride().has_value();
  }

  LogicalResult lower(Operation *op, Lowering &l) const {
    Value a = op->getOperand(0), b = op->getOperand(1), c = op->getResult(0);
    int64_t n = l.type(c).getShape().back(), k = l.type(a).getShape().back();
    l.create<GemmBiasOp>(l.result(0), l.operand(0), l.operand(1), l.operand(2), false, TransB,
                         l.elements(c) / n, n, k, *l.view(a).rowStride(), *l.view(b).rowStride(),
                         *l.view(c).rowStride());
    return success();
  }
};

struct BatchMatMul : KernelInterface::ExternalModel<BatchMatMul, tx::BatchMatMulOp> {
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto a = l.type(op->getOperand(0)).getShape(), c = l.type(op->getResult(0)).getShape();
    int64_t m = c[c.size() - 2], n = c.back(), k = a.back();
    l.create<GemmBatchedOp>(l.result(0), l.operand(0), l.operand(1),
                            l.elements(op->getResult(0)) / (m * n), m, n, k);
    return success();
  }
};

} // namespace

void rt::attachGemmKernels(MLIRContext *context) {
  tx::MatMulOp::attachInterface<Gemm<tx::MatMulOp, false, false>>(*context);
  tx::MatMulNTOp::attachInterface<Gemm<tx::MatMulNTOp, false, true>>(*context);
  tx::MatMulTNOp::attachInterface<Gemm<tx::MatMulTNOp, true, false>>(*context);
  tx::MatMulBiasOp::attachInterface<BiasedGemm<tx::MatMulBiasOp, false>>(*context);
  tx::MatMulNTBiasOp::attachInterface<BiasedGemm<tx::MatMulNTBiasOp, true>>(*context);
  tx::BatchMatMulOp::attachInterface<BatchMatMul>(*context);
}
