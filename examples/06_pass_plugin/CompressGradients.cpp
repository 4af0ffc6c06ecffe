// A pass that rewrites the program: all-reduces of float32 gradients communicate bfloat16.
//
// Half the bytes, for sums that are rounded: what PyTorch's bf16_compress_hook does. The pass decides
// by types and by an op's direction; the loss is a sum over ranks too, but of the forward pass, and
// stays as it is. New ops get the location of the op that they replace. From it, Partita derives their
// direction, layer and causes, by which later passes decide and which `partita explain` reports.

#include "dialects/Interfaces/Provenance.h"
#include "dialects/Par/Par.h"
#include "dialects/Tx/Tx.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "partita/Support/PassStatistic.h"

using namespace mlir;
using namespace partita;

namespace {

/// The values with another element type.
SmallVector<Value> cast(PatternRewriter &rewriter, Location loc, ValueRange values, Type element) {
  SmallVector<Value> cast;
  for (Value value : values) {
    auto type = llvm::cast<RankedTensorType>(value.getType()).clone(element);
    cast.push_back(tx::CastOp::create(rewriter, loc, type, value));
  }
  return cast;
}

struct CompressGradient : OpRewritePattern<par::AllReduceOp> {
  CompressGradient(MLIRContext *context, PassStatistic &compressed, PassStatistic &bytes)
      : OpRewritePattern(context), compressed(compressed), bytes(bytes) {}

  LogicalResult matchAndRewrite(par::AllReduceOp op, PatternRewriter &rewriter) const override {
    auto isFloat32 = [](Type type) {
      return llvm::cast<ShapedType>(type).getElementType().isF32();
    };
    if (!provenance::isBackward(op) || !llvm::all_of(op->getOperandTypes(), isFloat32))
      return failure();
    Location loc = op.getLoc();
    SmallVector<Value> narrow = cast(rewriter, loc, op.getValues(), rewriter.getBF16Type());
    SmallVector<Type> types;
    for (Type type : op->getResultTypes())
      types.push_back(llvm::cast<RankedTensorType>(type).clone(rewriter.getBF16Type()));
    auto reduced = par::AllReduceOp::create(rewriter, loc, types, narrow, op.getAxisAttr(),
                                            op.getReasonAttr());
    ++compressed;
    bytes += op.getWireBytes() - reduced.getWireBytes();
    rewriter.replaceOp(op, cast(rewriter, loc, reduced.getResults(), rewriter.getF32Type()));
    return success();
  }

private:
  PassStatistic &compressed, &bytes;
};

struct CompressGradients : PassWrapper<CompressGradients, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CompressGradients)

  CompressGradients() = default;
  CompressGradients(const CompressGradients &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "compress-gradients"; }
  StringRef getDescription() const final { return "float32 gradients are reduced in bfloat16"; }
  /// Of ops that the pass creates: a program that has none of them has not loaded their dialect.
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<tx::TxDialect>();
  }

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<CompressGradient>(&getContext(), compressed, bytes);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }

private:
  PassStatistic compressed{this, "compressed", "all-reduces that now communicate bfloat16"};
  PassStatistic bytes{this, "bytes", "bytes that are no longer communicated"};
};

} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "CompressGradients", "1",
          [] { PassRegistration<CompressGradients>(); }};
}
