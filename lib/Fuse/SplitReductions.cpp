//===- SplitReductions.cpp - split-reductions -------------------------------------------------===//
//
// The last run of adjacent dimensions is reduced first, since its elements are closest in memory,
// then the one before. Sums, means and maxima may be taken in any order: the parts of a mean have
// equal size.
//
//===------------------------------------------------------------------------------------------===//

#include "lib/Fuse/Matmuls.h"
#include "partita/Fuse/Passes.h"

namespace partita {
#define GEN_PASS_DEF_SPLITREDUCTIONSPASS
#include "partita/Fuse/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// Returns how many of the sorted dimensions, from the end, form one run: only dimensions of size
/// one are between them.
size_t lastRun(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  size_t first = dims.size() - 1;
  auto meets = [&](int64_t before, int64_t after) {
    return llvm::all_of(shape.slice(before + 1, after - before - 1),
                        [](int64_t size) { return size == 1; });
  };
  while (first > 0 && meets(dims[first - 1], dims[first]))
    --first;
  return dims.size() - first;
}

struct SplitReductions : partita::impl::SplitReductionsPassBase<SplitReductions> {
  void runOnOperation() override {
    getOperation().walk([&](Operation *op) {
      if (auto sum = dyn_cast<tx::ReduceSumOp>(op))
        visit(sum, par::Kind::Partial);
      else if (auto mean = dyn_cast<tx::ReduceMeanOp>(op))
        visit(mean, par::Kind::Invariant);
      else if (auto max = dyn_cast<tx::ReduceMaxOp>(op))
        visit(max, par::Kind::Max);
    });
  }

private:
  template <typename Op> void visit(Op op, par::Kind split) {
    SmallVector<int64_t> dims(op.getDims());
    llvm::sort(dims);
    OpBuilder builder(op);
    Value x = op.getX();
    while (!dims.empty()) {
      auto type = cast<RankedTensorType>(x.getType());
      size_t run = lastRun(type.getShape(), dims);
      if (run == dims.size())
        break;
      ArrayRef<int64_t> last = ArrayRef(dims).take_back(run);
      x = Op::create(builder, op.getLoc(), reducedType(type, last, split), x, last);
      dims.truncate(dims.size() - run);
    }
    if (x == op.getX())
      return;
    op.getXMutable().assign(x);
    op.setDims(dims);
    ++this->split;
  }
};

} // namespace
