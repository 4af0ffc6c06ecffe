//===- Provenance.cpp - what ops know of where they come from, through passes -----------------===//

#include "partita/Phases/Provenance.h"
#include "dialects/Interfaces/Provenance.h"
#include "mlir/Pass/PassInstrumentation.h"

using namespace mlir;
using namespace partita;

namespace {

/// Holds no state: passes on functions run in several threads.
struct CarryProvenance : PassInstrumentation {
  /// Upstream's simplifications do not know our attributes: cse takes ops of two layers that compute
  /// the same for different ones, canonicalize loses what it folds.
  static bool comparesAttributes(Pass *pass) {
    return pass->getArgument() == "cse" || pass->getArgument() == "canonicalize";
  }

  void runBeforePass(Pass *pass, Operation *op) override {
    provenance::load(op, comparesAttributes(pass));
  }
  void runAfterPass(Pass *, Operation *op) override { provenance::store(op); }
  void runAfterPassFailed(Pass *, Operation *op) override { provenance::store(op); }
};

struct SimplifyLocations : PassWrapper<SimplifyLocations, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SimplifyLocations)
  StringRef getName() const override { return "SimplifyLocations"; }
  void runOnOperation() override { provenance::simplifyLocations(getOperation()); }
};

} // namespace

void partita::simplifyLocationsLast(PassManager &manager) {
  manager.addPass(std::make_unique<SimplifyLocations>());
}

void partita::carryProvenance(PassManager &manager) {
  manager.addInstrumentation(std::make_unique<CarryProvenance>());
}
