//===- PipeAgree.cpp - pipe-agree ---------------------------------------------------------------===//
//
// Works on the program of all stages, once everything that shards parameters and states has been
// decided: their local types do not change after this.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Offload/Offload.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Train/Train.h"
#include "partita/Analysis/Parameters.h"
#include "partita/Analysis/StageMap.h"
#include "partita/Memory/Ledger.h"
#include "partita/Stages/Passes.h"
#include <array>

namespace partita {
#define GEN_PASS_DEF_PIPEAGREEPASS
#include "partita/Stages/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using pipe::PipeDialect;

namespace {

struct PipeAgree : partita::impl::PipeAgreePassBase<PipeAgree> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (!module->hasAttr(PipeDialect::kStages))
      return;
    number(module);
    noteHyperparameters(module);
    if (failed(placeShared(module, *pipe::positionsOf(module))))
      signalPassFailure();
  }

private:
  static void number(ModuleOp module) {
    SmallVector<Attribute> parameters, states;
    auto symbol = [](Operation *op) {
      return FlatSymbolRefAttr::get(SymbolTable::getSymbolName(op));
    };
    for (auto parameter : module.getOps<train::ParameterOp>())
      parameters.push_back(symbol(parameter));
    for (auto state : module.getOps<train::StateOp>())
      if (state.getOf())
        states.push_back(symbol(state));
    Builder b(module);
    module->setAttr(PipeDialect::kParameters, b.getArrayAttr(parameters));
    module->setAttr(PipeDialect::kParameterStates, b.getArrayAttr(states));
  }

  static void noteHyperparameters(ModuleOp module) {
    Builder b(module);
    NamedAttrList list;
    for (auto &[name, value] : analysis::sharedHyperparameters(module))
      list.set(name, b.getF64FloatAttr(value));
    module->setAttr(PipeDialect::kHyper, list.getDictionary(b.getContext()));
  }

  /// Places shared symbols one after another, each after everything that any of its stages already
  /// has.
  LogicalResult placeShared(ModuleOp module, const pipe::Positions &layout) {
    int64_t stages = layout.stages;
    FailureOr<analysis::LocalTypes> types = analysis::localTypes(module);
    if (failed(types))
      return failure();
    std::array<SmallVector<int64_t>, 2> ends; // per stage, in device and in host memory
    for (SmallVector<int64_t> &each : ends)
      each.assign(stages, 0);
    SymbolTableCollection tables;
    for (bool fillsLines : {true, false}) // those that fill full cache lines first
      for (Operation &op : *module.getBody()) {
        if (!isa<train::ParameterOp, train::StateOp>(op))
          continue;
        Holders holders = pipe::onStages(StageMap::ofSymbol(&op, tables), layout);
        int64_t bytes = bytesOf(analysis::localType(*types, &op));
        if (holders.isOne() || (bytes % memory::kAlignment == 0) != fillsLines)
          continue;
        SmallVector<int64_t> &end = ends[offload::livesOnHost(&op)];
        int64_t offset = 0;
        for (int64_t stage = 0; stage < stages; ++stage)
          if (holders.has(stage))
            offset = std::max(offset, end[stage]);
        for (int64_t stage = 0; stage < stages; ++stage)
          if (holders.has(stage))
            end[stage] = offset + memory::alignPersistent(bytes);
        op.setAttr(PipeDialect::kOffset, Builder(module).getI64IntegerAttr(offset));
        ++placed;
      }
    return success();
  }
};

} // namespace
