//===- Reductions.cpp - sums, means and maxima over dimensions --------------------------------===//

#include "dialects/Tx/Tx.h"
#include "partita/Lower/Lowering.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

namespace {

/// The reduced dimensions as one between the others: [outer, n, inner]; none when they are not
/// neighbours (dimensions of size one aside).
std::optional<std::array<int64_t, 3>> asOneDimension(ArrayRef<int64_t> shape,
                                                     ArrayRef<int64_t> dims) {
  std::array<int64_t, 3> sizes = {1, 1, 1};
  unsigned part = 0;
  for (auto [i, size] : llvm::enumerate(shape)) {
    if (size == 1)
      continue;
    bool reduced = llvm::is_contained(dims, static_cast<int64_t>(i));
    if (part == 0 && reduced)
      part = 1;
    else if (part == 1 && !reduced)
      part = 2;
    else if (part == 2 && reduced)
      return std::nullopt;
    sizes[part] *= size;
  }
  return sizes;
}

template <typename Op, typename Call>
struct Reduce : KernelInterface::ExternalModel<Reduce<Op, Call>, Op> {
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto reduce = cast<Op>(op);
    if (!isa<FloatType>(l.type(reduce.getX()).getElementType()))
      return op->emitOpError() << "has no kernel on this target for " << reduce.getX().getType();
    auto sizes = asOneDimension(l.type(reduce.getX()).getShape(), reduce.getDims());
    if (!sizes)
      return op->emitOpError() << "has no kernel on this target: the reduced dimensions of "
                               << reduce.getX().getType() << " are not neighbours";
    auto [outer, n, inner] = *sizes;
    l.create<Call>(l.result(0), l.operand(0), outer, n, inner);
    return success();
  }
};

} // namespace

void rt::attachReductionKernels(MLIRContext *context) {
  tx::ReduceSumOp::attachInterface<Reduce<tx::ReduceSumOp, rt::ReduceSumOp>>(*context);
  tx::ReduceMeanOp::attachInterface<Reduce<tx::ReduceMeanOp, rt::ReduceMeanOp>>(*context);
  tx::ReduceMaxOp::attachInterface<Reduce<tx::ReduceMaxOp, rt::ReduceMaxOp>>(*context);
}
