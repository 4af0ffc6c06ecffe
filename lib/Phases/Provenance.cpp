//===- Provenance.cpp - what ops know of where they come from, through passes -----------------===//

#include "partita/Phases/Provenance.h"
#include "dialects/Interfaces/Provenance.h"
#include "mlir/IR/Diagnostics.h"
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

/// Of an op that has no place in a file, upstream's printer prints the location itself, with all that is fused into it.
struct PlainMessages : PassInstrumentation {
  explicit PlainMessages(MLIRContext *context)
      : handler(context, [](Diagnostic &diagnostic) { return reemit(diagnostic); }) {}

private:
  static bool isPlain(Location loc) {
    return isa<UnknownLoc>(loc) || loc->findInstanceOf<FileLineColLoc>();
  }
  static Location plain(Location loc) {
    return isPlain(loc) ? loc : Location(UnknownLoc::get(loc->getContext()));
  }
  static LogicalResult reemit(Diagnostic &diagnostic) {
    auto locations =
        llvm::map_range(diagnostic.getNotes(), [](Diagnostic &note) { return note.getLocation(); });
    if (isPlain(diagnostic.getLocation()) && llvm::all_of(locations, isPlain))
      return failure(); // the next handler prints it
    Location loc = plain(diagnostic.getLocation());
    DiagnosticEngine &engine = loc->getContext()->getDiagEngine();
    InFlightDiagnostic again = engine.emit(loc, diagnostic.getSeverity());
    again << diagnostic.str();
    for (Diagnostic &note : diagnostic.getNotes())
      again.attachNote(plain(note.getLocation())) << note.str();
    return success();
  }

  ScopedDiagnosticHandler handler;
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

void partita::printPlainMessages(PassManager &manager) {
  manager.addInstrumentation(std::make_unique<PlainMessages>(manager.getContext()));
}
