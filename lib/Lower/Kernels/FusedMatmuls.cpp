//===- FusedMatmuls.cpp - matmuls and what their kernels do along with them -------------------===//

#include "dialects/Tx/FusedMatmul.h"
#include "lib/Lower/Kernels/ScaledMatmul.h"
#include "partita/Lower/Lowering.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

namespace {

/// A matmul's operands as a call has them: how they are stored and how large the result is.
struct Sizes {
  Value a, b;
  bool transA, transB;
  int64_t m, n, k, lda, ldb;

  Sizes(const tx::FusedMatmul &parts, Lowering &l)
      : a(parts.input(parts.matmul->getOperand(0))), b(parts.input(parts.matmul->getOperand(1))),
        transA(isa<tx::MatMulTNOp>(parts.matmul)),
        transB(isa<tx::MatMulNTOp, tx::MatMulNTBiasOp>(parts.matmul)), lda(*l.view(a).rowStride()),
        ldb(*l.view(b).rowStride()) {
    auto least1 = [](int64_t size) { return std::max<int64_t>(size, 1); };
    Value c = parts.matmul->getResult(0);
    int64_t width = l.type(a).getShape().back();
    n = l.type(c).getShape().back();
    m = l.elements(c) / least1(n);
    k = transA ? l.elements(a) / least1(width) : width;
  }
};

bool isGradient(const tx::FusedMatmul &parts) { return parts.isWeightGradient(); }

/// Matrices may have any stride between rows, unless the operands have 8 bits; vectors, and what a
/// gradient is added to, are dense.
struct FusedMatmul : KernelInterface::ExternalModel<FusedMatmul, tx::FusedMatmulOp> {
  bool acceptsOperand(Operation *op, unsigned number, const View &view) const {
    auto parts = partsOf(op);
    Value argument = op->getRegion(0).getArgument(number);
    if (tx::isScaled(parts.matmul))
      return false;
    bool isMatrix = llvm::is_contained(parts.matmul->getOperands().take_front(2), argument) ||
                    (parts.slope && parts.slope.getX() == argument) ||
                    (!isGradient(parts) && parts.soFar == argument);
    return isMatrix && view.rowStride().has_value();
  }
  bool acceptsResult(Operation *op, unsigned number, const View &view) const {
    auto parts = partsOf(op);
    bool isMatrix = (number == 0 || parts.gelu) && !tx::isScaled(parts.matmul);
    return isMatrix && !(isGradient(parts) && parts.soFar) && view.rowStride().has_value();
  }
  SmallVector<unsigned> inPlaceOperands(Operation *op, unsigned number) const {
    auto parts = partsOf(op);
    Value soFar = number == 0 ? parts.soFar : parts.rowsSoFar;
    return soFar ? SmallVector<unsigned>{cast<BlockArgument>(soFar).getArgNumber()}
                 : SmallVector<unsigned>();
  }

  StringRef resultName(Operation *op, unsigned number) const {
    auto parts = partsOf(op);
    if (parts.gelu)
      return number == 0 ? "gelu" : "pre_gelu";
    if (parts.slope)
      return number == 0 ? "gelu_grad" : "gelu_grad_sums";
    return parts.soFar && !isGradient(parts) ? "sum" : "";
  }

  LogicalResult lower(Operation *op, Lowering &l) const {
    auto parts = partsOf(op);
    if (!Target::of(op).fusesMatmuls() && (parts.rowSums || !isGradient(parts)))
      return op->emitOpError() << "has no kernel on the target '" << Target::of(op).getName()
                               << "'";
    if (tx::isScaled(parts.matmul))
      return lowerScaled(parts, l);
    Sizes s(parts, l);
    if (parts.gelu)
      lowerGelu(parts, s, l);
    else if (parts.slope)
      lowerSlope(parts, s, l);
    else if (!isGradient(parts))
      lowerAdd(parts, s, l);
    else
      lowerGradient(parts, s, l);
    return success();
  }

private:
  static tx::FusedMatmul partsOf(Operation *op) {
    return tx::FusedMatmul::of(cast<tx::FusedMatmulOp>(op));
  }

  static int64_t stride(Lowering &l, Value matrix) { return *l.view(matrix).rowStride(); }

  static void lowerGelu(tx::FusedMatmul &parts, const Sizes &s, Lowering &l) {
    Value bias = parts.input(parts.bias()), c = l.op->getResult(0);
    Value aux = l.op->getNumResults() > 1 ? l.op->getResult(1) : Value();
    l.create<GemmBiasGeluOp>(l.buffer(c), aux ? l.buffer(aux) : Value(), l.buffer(s.a),
                             l.buffer(s.b), l.buffer(bias), s.transA, s.transB, s.m, s.n, s.k,
                             s.lda, s.ldb, stride(l, c), aux ? stride(l, aux) : 0);
  }

  static void lowerSlope(tx::FusedMatmul &parts, const Sizes &s, Lowering &l) {
    Value aux = parts.input(parts.slope.getX()), c = l.op->getResult(0), sums;
    if (parts.rowSums)
      sums = l.buffer(l.op->getResult(1));
    l.create<GemmGeluGradOp>(l.buffer(c), sums, l.buffer(s.a), l.buffer(s.b), l.buffer(aux),
                             s.transA, s.transB, s.m, s.n, s.k, s.lda, s.ldb, stride(l, c),
                             stride(l, aux));
  }

  /// Where the addend died, its place is the result's.
  static void lowerAdd(tx::FusedMatmul &parts, const Sizes &s, Lowering &l) {
    Value addend = parts.addedTo(0), c = l.op->getResult(0), bias;
    if (parts.bias())
      bias = l.buffer(parts.input(parts.bias()));
    l.create<GemmAddOp>(l.buffer(c), l.buffer(s.a), l.buffer(s.b), bias, l.buffer(addend), s.transA,
                        s.transB, s.m, s.n, s.k, s.lda, s.ldb, stride(l, addend), stride(l, c));
  }

  /// A kernel may read the addend of a GPU's matmul elsewhere.
  static LogicalResult lowerScaled(tx::FusedMatmul &parts, Lowering &l) {
    if (isGradient(parts))
      begin(l, parts, 0);
    Value addend = isGradient(parts) ? l.op->getResult(0) : parts.addedTo(0);
    return lowerScaledMatmul(
        parts.matmul, l, [&](Value argument) { return parts.input(argument); }, addend);
  }

  /// What was not given its place in what it is added to begins as a copy of that.
  static void begin(Lowering &l, const tx::FusedMatmul &parts, unsigned result) {
    Value made = l.op->getResult(result), soFar = parts.addedTo(result);
    if (soFar && !l.samePlace(made, soFar))
      l.copy(l.buffer(made), l.view(made), soFar);
  }

  static void lowerGradient(tx::FusedMatmul &parts, const Sizes &s, Lowering &l) {
    Value c = l.op->getResult(0);
    begin(l, parts, 0);
    if (!parts.rowSums) {
      l.create<GemmOp>(l.buffer(c), l.buffer(s.a), l.buffer(s.b), s.transA, s.transB, s.m, s.n, s.k,
                       s.lda, s.ldb, stride(l, c), APFloat(1.0));
      return;
    }
    Value sums = l.op->getResult(1);
    begin(l, parts, 1);
    l.create<GemmBiasGradOp>(l.buffer(c), l.buffer(sums), l.buffer(s.a), l.buffer(s.b),
                             parts.sumsFirst(), s.m, s.n, s.k, s.lda, s.ldb, stride(l, c),
                             bool(parts.soFar));
  }
};

} // namespace

void rt::attachFusedMatmuls(MLIRContext *context) {
  tx::FusedMatmulOp::attachInterface<FusedMatmul>(*context);
}
