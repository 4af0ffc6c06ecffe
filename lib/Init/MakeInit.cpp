//===- MakeInit.cpp - adds @init, which sets parameters' initial values -----------------------===//

#include "dialects/Train/Train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Init/Passes.h"
#include "llvm/ADT/StringSet.h"

namespace partita {
#define GEN_PASS_DEF_MAKEINITPASS
#include "partita/Init/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

struct MakeInit : partita::impl::MakeInitPassBase<MakeInit> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    Operation *symbol = train::lookup(module, train::EntryPoint::Init);
    auto init = dyn_cast_or_null<func::FuncOp>(symbol);
    if (symbol && !init) {
      symbol->emitError()
          << "the entry point '" << train::nameOf(train::EntryPoint::Init) << "' is a '"
          << symbol->getName()
          << "'; make-init is for a program before lower-to-rt, where it is a 'func.func'";
      return signalPassFailure();
    }
    if (init && (!init.getBody().hasOneBlock() || init.getNumArguments() != 0)) {
      init.emitError() << "the entry point '" << train::nameOf(train::EntryPoint::Init)
                       << "' takes no arguments and has a body of one block";
      return signalPassFailure();
    }
    if (!init && module.getOps<train::ParameterOp>().empty())
      return;
    if (!init && failed(train::expectFreeName(module, train::EntryPoint::Init)))
      return signalPassFailure();
    if (!init)
      init = emptyInit(module);
    llvm::StringSet<> written;
    init.walk([&](train::WriteOp write) { written.insert(write.getSymbol()); });
    OpBuilder builder(init.getBody().front().getTerminator());
    for (auto parameter : module.getOps<train::ParameterOp>()) {
      if (written.contains(parameter.getSymName()))
        continue;
      ++initialized;
      Value value =
          train::InitialValueOp::create(builder, parameter.getLoc(), parameter.getType(),
                                        FlatSymbolRefAttr::get(parameter.getSymNameAttr()));
      train::WriteOp::create(builder, parameter.getLoc(), parameter.getSymName(), value);
    }
  }

private:
  /// Creates @init before the other functions: it runs first, so it is read first.
  static func::FuncOp emptyInit(ModuleOp module) {
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    if (auto functions = module.getOps<func::FuncOp>(); !functions.empty())
      builder.setInsertionPoint(*functions.begin());
    auto init =
        func::FuncOp::create(builder, module.getLoc(), train::nameOf(train::EntryPoint::Init),
                             builder.getFunctionType({}, {}));
    train::set(init, train::EntryPoint::Init);
    builder.setInsertionPointToStart(init.addEntryBlock());
    func::ReturnOp::create(builder, module.getLoc());
    return init;
  }
};

} // namespace
