//===- MarkLayers.cpp - mark-layers -----------------------------------------------------------===//
//
// Runs while the program is the unpartitioned forward pass alone. From then on every op carries its
// layer (dialects/Interfaces/Provenance.h).
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Interfaces/Provenance.h"
#include "dialects/Train/Train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Analysis/Layers.h"
#include "partita/Layers/Passes.h"

namespace partita {
#define GEN_PASS_DEF_MARKLAYERSPASS
#include "partita/Layers/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using train::LayerAttr;

namespace {

struct MarkLayers : partita::impl::MarkLayersPassBase<MarkLayers> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      mark(function);
    for (auto function : getOperation().getOps<func::FuncOp>())
      function.walk([&](train::ReadOp read) { markParameter(read); });
    getOperation().walk([](train::InitialValueOp value) {
      Operation *parameter = SymbolTable::lookupNearestSymbolFrom(value, value.getSymbolAttr());
      if (LayerAttr layer = parameter ? LayerAttr::of(parameter) : LayerAttr())
        provenance::set(value, provenance::kLayer, layer);
    });
  }

private:
  /// Assigns a parameter to the layer that uses it first. What is made at its location, its updates
  /// and their states, inherits the layer.
  void markParameter(train::ReadOp read) {
    auto parameter =
        SymbolTable::lookupNearestSymbolFrom<train::ParameterOp>(read, read.getSymbolAttr());
    if (!parameter || LayerAttr::of(parameter))
      return;
    Operation *first = nullptr;
    for (Operation *user : read->getUsers())
      if (!first || (user->getBlock() == first->getBlock() && user->isBeforeInBlock(first)))
        first = user;
    if (LayerAttr layer = first ? LayerAttr::of(first) : LayerAttr())
      provenance::set(parameter, provenance::kLayer, layer);
  }

  /// Ops outside of the loop over micro-batches run once per step and belong to no layer.
  void mark(func::FuncOp function) {
    analysis::Layers layers(function);
    bool loops = !function.getOps<train::AccumulateOp>().empty();
    function.walk([&](Operation *op) {
      if (op == function || LayerAttr::of(op))
        return;
      bool inside = op->getParentOfType<train::AccumulateOp>() != nullptr;
      int64_t number = loops && !inside ? LayerAttr::kOnce : layers.layerOf(op);
      marked += number >= 0;
      auto layer = LayerAttr::get(&getContext(), number, layers.count());
      provenance::set(op, provenance::kLayer, layer);
    });
  }
};

} // namespace
