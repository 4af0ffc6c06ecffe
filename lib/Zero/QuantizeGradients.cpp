//===- QuantizeGradients.cpp - marks the gradients that ranks send in 4 bits ------------------===//
//
// Each reduce-scatter on the way from an update back to what a pass computes, over one axis after another:
// a sum that is scattered again is rounded again.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Interfaces/Interfaces.h"
#include "dialects/Par/OneBit.h"
#include "dialects/Train/Train.h"
#include "dialects/Zero/Zero.h"
#include "mlir/IR/BuiltinOps.h"
#include "partita/Analysis/Parameters.h"
#include "partita/Zero/Passes.h"
#include "runtime/include/partita_rt/int4_chunks.h"
#include "llvm/ADT/DenseSet.h"

namespace partita {
#define GEN_PASS_DEF_ZEROQUANTIZEGRADIENTSPASS
#include "partita/Zero/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using partita_rt::int4_chunks::kWord;

namespace {

struct ZeroQuantizeGradients : partita::impl::ZeroQuantizeGradientsPassBase<ZeroQuantizeGradients> {
  using ZeroQuantizeGradientsPassBase::ZeroQuantizeGradientsPassBase;

  void runOnOperation() override {
    if (!on)
      return;
    if (failed(check()))
      return signalPassFailure();
    auto kept = analysis::parametersNamed(getOperation(), exact, "keep-exact");
    if (failed(kept))
      return signalPassFailure();
    marked = 0;
    llvm::DenseSet<Operation *> named; // parameters that would be rounded
    SymbolTable symbols(getOperation());
    getOperation().walk([&](train::OptimizerInterface update) {
      FlatSymbolRefAttr name = train::updatedParameter(update);
      auto parameter = name ? symbols.lookup<train::ParameterOp>(name.getValue()) : nullptr;
      if (!parameter || parameter.getType().getRank() < 2)
        return;
      seen.clear();
      SmallVector<zero::ReduceScatterOp> scatters;
      collect(update.getUpdatingGradient(), scatters);
      if (kept->contains(parameter) && !scatters.empty())
        named.insert(parameter);
      if (!kept->contains(parameter))
        mark(scatters);
    });
    if (failed(analysis::checkNamed(
            getOperation(), exact, "keep-exact",
            [&](train::ParameterOp each) {
              return named.contains(each) || (weights && each.getType().getRank() >= 2);
            },
            "would be exact without it: rounded are gradients of parameters of two or more "
            "dimensions that are scattered in shards of more than a few elements")))
      return signalPassFailure();
    quantized += marked;
    if (marked > 0)
      return;
    getOperation().emitError()
        << "--zero-quantized-gradients: has no effect, because no gradient of a parameter of two "
           "or more dimensions that --keep-exact leaves is scattered over ranks, in shards for "
           "which 4 bits per element and a scale per block are less than the elements; leave it "
           "out";
    signalPassFailure();
  }

private:
  LogicalResult check() {
    if (block < kWord)
      return getOperation().emitError()
             << "--gradient-quantization-block: " << block.getValue()
             << ": a block is whole words of " << kWord << " numbers; give at least " << kWord;
    if (stage < 1)
      return getOperation().emitError()
             << "--zero-quantized-gradients: with --zero-stage 0 every rank keeps the sums of all "
                "gradients; give --zero-stage 1, 2 or 3";
    if (!par::hasOneBitSums(getOperation()))
      return success();
    return getOperation().emitError()
           << "--zero-quantized-gradients: has no effect where momenta are summed with a bit per "
              "element: every rank keeps every sum in full, and none is scattered; leave it out";
  }

  void mark(ArrayRef<zero::ReduceScatterOp> scatters) {
    for (zero::ReduceScatterOp scatter : scatters)
      if (!scatter.getInt4Block()) {
        scatter.setInt4Block(blockSize());
        ++marked;
      }
  }

  /// Finds what scatters this gradient, or what it is made of, over ranks.
  void collect(Value gradient, SmallVectorImpl<zero::ReduceScatterOp> &scatters) {
    if (!seen.insert(gradient).second)
      return;
    Operation *op = gradient.getDefiningOp();
    if (!op)
      return;
    unsigned number = cast<OpResult>(gradient).getResultNumber();
    if (auto loop = dyn_cast<train::AccumulateOp>(op))
      return number < loop.getSums().size() ? collect(loop.getPart(number).get(), scatters)
                                            : void();
    auto scatter = dyn_cast<zero::ReduceScatterOp>(op);
    if (scatter && isWorthIt(scatter))
      scatters.push_back(scatter);
    if (isa<CollectiveInterface>(op))
      return op->getNumOperands() > number ? collect(op->getOperand(number), scatters) : void();
    for (Value operand : op->getOperands()) // only shards are scattered before
      if (isa<RankedTensorType>(operand.getType()) &&
          !par::Layout::of(operand.getType()).flat.empty())
        collect(operand, scatters);
  }

  int64_t blockSize() const { return block / kWord * kWord; }

  /// Are the chunks smaller than the shards that are summed from them?
  bool isWorthIt(zero::ReduceScatterOp scatter) const {
    return llvm::all_of(scatter.getShards().getTypes(), [&](Type type) {
      auto shard = cast<RankedTensorType>(type);
      return isa<FloatType>(shard.getElementType()) &&
             partita_rt::int4_chunks::chunkBytes(shard.getNumElements(), blockSize()) <
                 bytesOf(TypeRange(type));
    });
  }

  llvm::DenseSet<Value> seen; ///< of one update
  int64_t marked = 0;
};

} // namespace
