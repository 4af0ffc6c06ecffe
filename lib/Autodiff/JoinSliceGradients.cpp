//===- JoinSliceGradients.cpp - turns sums of padded slices into concatenations ---------------===//
//
// All leaves of the tree of additions must be pads along one dimension with stride one that, sorted
// by offset, cover it without gap or overlap. Slices of a parameter that different pipeline stages
// read stay a sum, of which each stage has its own terms.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Par/Placement.h"
#include "dialects/Tx/Tx.h"
#include "partita/Analysis/StageMap.h"
#include "partita/Autodiff/Passes.h"

namespace partita {
#define GEN_PASS_DEF_JOINSLICEGRADIENTSPASS
#include "partita/Autodiff/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

bool collectPads(Value value, SmallVectorImpl<tx::PadOp> &pads) {
  if (auto pad = value.getDefiningOp<tx::PadOp>()) {
    pads.push_back(pad);
    return llvm::all_of(pad.getStrides(), [](int64_t stride) { return stride == 1; });
  }
  auto add = value.getDefiningOp<tx::AddOp>();
  return add && collectPads(add.getA(), pads) && collectPads(add.getB(), pads);
}

/// Returns the only dimension along which the pad is wider than its operand, or -1.
int64_t paddedDim(tx::PadOp pad) {
  int64_t found = -1;
  auto from = cast<RankedTensorType>(pad.getX().getType());
  for (int64_t i = 0; i < from.getRank(); ++i)
    if (from.getDimSize(i) != pad.getType().getDimSize(i)) {
      if (found >= 0)
        return -1;
      found = i;
    }
  return found;
}

/// Returns the concatenation that equals `root`, or null. `map` is for a program of several stages.
Value join(tx::AddOp root, const StageMap *map) {
  SmallVector<tx::PadOp> pads;
  if (!collectPads(root.getResult(), pads))
    return {};
  int64_t dim = paddedDim(pads.front());
  if (dim < 0 || llvm::any_of(pads, [&](tx::PadOp pad) { return paddedDim(pad) != dim; }))
    return {};
  llvm::sort(pads,
             [&](tx::PadOp a, tx::PadOp b) { return a.getOffsets()[dim] < b.getOffsets()[dim]; });
  int64_t end = 0;
  SmallVector<Value> slices;
  for (tx::PadOp pad : pads) {
    if (pad.getOffsets()[dim] != end)
      return {};
    end += cast<RankedTensorType>(pad.getX().getType()).getDimSize(dim);
    slices.push_back(pad.getX());
  }
  if (end != root.getType().getDimSize(dim))
    return {};
  // If an axis splits the dimension, unequal blocks would need a letter each, and an axis splits
  // only one letter.
  bool isSplit = !par::Layout::of(root.getType()).splits[dim].empty();
  if (isSplit && !llvm::all_equal(llvm::map_range(slices, [&](Value slice) {
        return cast<RankedTensorType>(slice.getType()).getDimSize(dim);
      })))
    return {};
  if (map && map->of(root.getResult()).partial)
    return {};
  OpBuilder builder(root);
  return tx::ConcatOp::create(builder, root.getLoc(), root.getType(), slices, dim);
}

struct JoinSliceGradients : partita::impl::JoinSliceGradientsPassBase<JoinSliceGradients> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isDeclaration() && failed(joinAll(function)))
        return signalPassFailure();
  }

private:
  LogicalResult joinAll(func::FuncOp function) {
    SmallVector<tx::AddOp> adds;
    function.walk([&](tx::AddOp add) {
      if (add.getA().getDefiningOp<tx::PadOp>() || add.getB().getDefiningOp<tx::PadOp>())
        adds.push_back(add);
    });
    std::optional<StageMap> map;
    if (!adds.empty() && getOperation()->hasAttr(pipe::PipeDialect::kStages)) {
      FailureOr<StageMap> found = StageMap::of(function);
      if (failed(found))
        return failure();
      map = std::move(*found);
    }
    for (tx::AddOp add : adds)
      if (Value concat = join(add, map ? &*map : nullptr)) {
        add.getResult().replaceAllUsesWith(concat);
        ++joined;
      }
    return success();
  }
};

} // namespace
