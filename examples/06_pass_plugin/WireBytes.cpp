// A pass and a dialect of one's own: what does each function communicate?
//
// The pass asks every op that is a collective for its bytes, whichever dialect it belongs to, and
// leaves the sum on the function as `experiment.wire_bytes`. The dialect says what that attribute
// may be, so that a damaged one is refused wherever the program is read.

#include "dialects/Interfaces/Interfaces.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Dialect.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

using namespace mlir;

namespace {

class ExperimentDialect : public Dialect {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ExperimentDialect)

  explicit ExperimentDialect(MLIRContext *context)
      : Dialect(getDialectNamespace(), context, TypeID::get<ExperimentDialect>()) {}

  static constexpr llvm::StringLiteral getDialectNamespace() { return "experiment"; }

  LogicalResult verifyOperationAttribute(Operation *op, NamedAttribute attribute) override {
    auto bytes = dyn_cast<IntegerAttr>(attribute.getValue());
    if (attribute.getName() == "experiment.wire_bytes" && bytes && bytes.getInt() >= 0)
      return success();
    return op->emitError() << "'" << attribute.getName().getValue() << "' is "
                           << attribute.getValue() << ", expected experiment.wire_bytes >= 0";
  }
};

struct WireBytes : PassWrapper<WireBytes, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(WireBytes)

  StringRef getArgument() const final { return "wire-bytes"; }
  StringRef getDescription() const final { return "bytes that a function's collectives move"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<ExperimentDialect>();
  }

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      int64_t count = 0, bytes = 0;
      function.walk([&](partita::CollectiveInterface collective) {
        ++count;
        bytes += collective.getWireBytes();
      });
      if (count == 0)
        continue;
      function->setAttr("experiment.wire_bytes", Builder(&getContext()).getI64IntegerAttr(bytes));
      function.emitRemark() << "@" << function.getName() << " moves " << bytes << " bytes in "
                            << count << " collectives";
    }
  }
};

} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "WireBytes", "1", [] { PassRegistration<WireBytes>(); }};
}

extern "C" LLVM_ATTRIBUTE_WEAK DialectPluginLibraryInfo mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "Experiment", "1",
          [](DialectRegistry *registry) { registry->insert<ExperimentDialect>(); }};
}
