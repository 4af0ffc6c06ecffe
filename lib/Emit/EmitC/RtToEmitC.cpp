//===- RtToEmitC.cpp - rt-to-emitc ------------------------------------------------------------===//

#include "lib/Emit/EmitC/Converter.h"
#include "lib/Emit/EmitC/KernelsToEmitC.h"
#include "lib/Emit/Targets/TargetEmitter.h"
#include "partita/Emit/Passes.h"

namespace partita {
#define GEN_PASS_DEF_RTTOEMITC
#include "partita/Emit/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using namespace partita::rt;

namespace {

/// What the columns of the tables of tensors are to the updates over their rows: "p, m, v and g".
llvm::StringMap<std::string> columnsOf(ModuleOp module) {
  llvm::StringMap<std::string> columns;
  module.walk([&](UpdateAllOp update) {
    auto kernel =
        SymbolTable::lookupNearestSymbolFrom<UpdateKernelOp>(update, update.getKernelAttr());
    SmallVector<StringRef> values(kernel.getValues().getAsValueRange<StringAttr>());
    StringRef last = values.pop_back_val();
    columns[update.getTensors()] = (llvm::join(values, ", ") + " and " + last).str();
  });
  return columns;
}

struct RtToEmitC : partita::impl::RtToEmitCBase<RtToEmitC> {
  void runOnOperation() override {
    const emit::TargetEmitter &emitter = emit::emitterOf(Target::of(getOperation()));
    llvm::StringMap<std::string> columns = columnsOf(getOperation());
    convertBlockLayouts(getOperation(), emitter.keepsTablesOnDevice());
    emitter.convertKernels(getOperation());
    std::unique_ptr<Converter> converter = emitter.createConverter(&getContext());
    // Functions first, since a call asks its layer for its name.
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (++functions; failed(converter->convert(function)))
        return signalPassFailure();
    for (auto layer : llvm::make_early_inc_range(getOperation().getOps<LayerOp>()))
      if (++functions; failed(converter->convert(layer)))
        return signalPassFailure();
    // Tables last, since calls ask them for their contents.
    for (auto tensors : llvm::make_early_inc_range(getOperation().getOps<TensorsOp>()))
      converter->convert(tensors, columns.contains(tensors.getSymName())
                                      ? columns[tensors.getSymName()]
                                      : "the gradients");
  }
};

} // namespace
