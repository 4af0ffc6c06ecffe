//===- Work.cpp - how much an op has to do ----------------------------------------------------===//

#include "partita/Analysis/Work.h"
#include "dialects/Interfaces/Interfaces.h"
#include "dialects/Interfaces/Provenance.h"
#include "dialects/Par/Par.h"
#include "dialects/Rt/Rt.h"
#include "partita/Analysis/Flops.h"

using namespace mlir;
using namespace partita;
using namespace partita::analysis;

bool analysis::isView(Operation *op) {
  auto kernel = dyn_cast<rt::KernelInterface>(op);
  if (!kernel || op->getNumOperands() != 1 || op->getNumResults() != 1)
    return false;
  auto operand = dyn_cast<RankedTensorType>(op->getOperand(0).getType());
  return operand && operand.hasStaticShape() &&
         kernel.viewOfOperand(rt::View::dense(operand.getShape()));
}

static int64_t shardFlops(Operation *op) {
  Flops flops = flopsOf(op, FlopsOf::Shards);
  return static_cast<int64_t>(std::min(flops.matmuls + flops.elementwise, 1e18));
}

Work analysis::workOf(Operation *op) {
  if (op->getNumOperands() == 0 || isa<par::ParDialect>(op->getDialect()) ||
      isa<CollectiveInterface>(op))
    return {};
  auto isPlain = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.hasStaticShape() && tensor.getElementType().isIntOrFloat();
  };
  if (!llvm::all_of(op->getOperandTypes(), isPlain) || !llvm::all_of(op->getResultTypes(), isPlain))
    return {};
  if (isView(op))
    return {};
  Work work;
  work.flops = shardFlops(op);
  if (op->hasTrait<OpTrait::IsIsolatedFromAbove>())
    op->walk([&](Operation *inner) { // elementwise ops take as long as their bytes
      if (!isa<ScalarInterface>(inner))
        work.flops += shardFlops(inner);
    });
  for (TypeRange types : {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())})
    for (Type type : types) {
      auto tensor = cast<RankedTensorType>(type);
      work.bytes += tensor.getNumElements() * rt::elementBytes(tensor.getElementType());
    }
  return work;
}

PassCosts analysis::passCostsOf(Operation *op) {
  int64_t cost = workOf(op).cost();
  if (provenance::isBackward(op))
    return {0, cost};
  auto work = dyn_cast<ShardInterface>(op);
  if (!work || work.getGradientMatmuls() == 0)
    return {cost, 0};
  // The share of its gradients' matmuls.
  auto matmuls = static_cast<int64_t>(work.getMatmuls().size());
  int64_t forward = cost / matmuls * (matmuls - work.getGradientMatmuls());
  return {forward, cost - forward};
}
