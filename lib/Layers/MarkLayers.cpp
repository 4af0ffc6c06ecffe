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
    SmallVector<std::pair<func::FuncOp, analysis::Layers>> functions;
    int64_t count = 0;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      functions.emplace_back(function, analysis::Layers(function));
      count = std::max(count, functions.back().second.count());
    }
    // A function without layers (@init) counts the others': its ops inherit those of parameters.
    for (auto &[function, layers] : functions)
      mark(function, layers, layers.count() ? layers.count() : count);
    for (auto function : getOperation().getOps<func::FuncOp>())
      function.walk([&](train::ReadOp read) { markParameter(read); });
    getOperation().walk([](train::InitialValueOp value) { inherit(value, value.getSymbolAttr()); });
    getOperation().walk([](train::WriteOp write) { inherit(write, write.getSymbolAttr()); });
  }

private:
  /// A parameter's initial value, and its first write, belong to the parameter's layer.
  static void inherit(Operation *op, FlatSymbolRefAttr symbol) {
    Operation *parameter = SymbolTable::lookupNearestSymbolFrom(op, symbol);
    if (LayerAttr layer = parameter ? LayerAttr::of(parameter) : LayerAttr())
      provenance::set(op, provenance::kLayer, layer);
  }

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
  void mark(func::FuncOp function, const analysis::Layers &layers, int64_t count) {
    bool loops = !function.getOps<train::AccumulateOp>().empty();
    function.walk([&](Operation *op) {
      if (op == function || LayerAttr::of(op))
        return;
      bool inside = op->getParentOfType<train::AccumulateOp>() != nullptr;
      int64_t number = loops && !inside ? LayerAttr::kOnce : layers.layerOf(op);
      marked += number >= 0;
      auto layer = LayerAttr::get(&getContext(), number, count);
      provenance::set(op, provenance::kLayer, layer);
    });
  }
};

} // namespace
