//===- QuantizeWeights.cpp - marks the weights that are read in 8 bits ------------------------===//
//
// Before the program is partitioned, so that the program on one rank, the oracle, rounds the same numbers.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Train/Train.h"
#include "mlir/IR/BuiltinOps.h"
#include "partita/Analysis/Parameters.h"
#include "partita/Zero/Passes.h"
#include "runtime/include/partita_rt/int8_blocks.h"
#include "llvm/ADT/bit.h"

namespace partita {
#define GEN_PASS_DEF_ZEROQUANTIZEWEIGHTSPASS
#include "partita/Zero/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using partita_rt::int8_blocks::kLeastBlock;

namespace {

struct ZeroQuantizeWeights : partita::impl::ZeroQuantizeWeightsPassBase<ZeroQuantizeWeights> {
  using ZeroQuantizeWeightsPassBase::ZeroQuantizeWeightsPassBase;

  void runOnOperation() override {
    if (!on)
      return;
    if (block < kLeastBlock) {
      getOperation().emitError() << "block=" << block.getValue() << ", expected at least "
                                 << kLeastBlock;
      return signalPassFailure();
    }
    auto kept = analysis::parametersNamed(getOperation(), exact, "keep-exact");
    if (failed(kept))
      return signalPassFailure();
    if (failed(analysis::checkNamed(
            getOperation(), exact, "keep-exact",
            [&](train::ParameterOp each) {
              return blockOf(each.getType()) > 0 || (gradients && each.getType().getRank() >= 2);
            },
            gradients
                ? "would be exact without it: rounded are parameters of two or more dimensions"
                : "would be exact without it: rounded are parameters of two or more "
                  "dimensions, with a last one that 8 divides")))
      return signalPassFailure();
    SymbolTable symbols(getOperation());
    unsigned marked = 0;
    getOperation().walk([&](train::ReadOp read) {
      auto parameter = symbols.lookup<train::ParameterOp>(read.getSymbol());
      int64_t fits = parameter && !kept->contains(parameter) ? blockOf(read.getType()) : 0;
      if (fits == 0)
        return;
      read.setInt8Block(fits);
      ++marked;
    });
    quantized += marked;
    if (marked > 0)
      return;
    getOperation().emitError()
        << "--zero-quantized-weights: has no effect, because no parameter of two or more "
           "dimensions, with a last one that 8 divides, is left by --keep-exact; leave it out";
    signalPassFailure();
  }

private:
  /// The elements of a block of such a parameter; 0 if it stays exact.
  int64_t blockOf(RankedTensorType type) const {
    if (!isa<FloatType>(type.getElementType()) || type.getRank() < 2)
      return 0;
    int64_t last = type.getShape().back();
    auto fits = static_cast<int64_t>(llvm::bit_floor(static_cast<uint64_t>(block)));
    while (fits >= kLeastBlock && last % fits != 0)
      fits /= 2;
    return fits >= kLeastBlock ? fits : 0;
  }
};

} // namespace
