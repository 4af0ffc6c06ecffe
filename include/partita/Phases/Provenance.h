//===- Provenance.h - carries ops' provenance through passes ------------------------*- C++ -*-===//
#ifndef PARTITA_PHASES_PROVENANCE_H
#define PARTITA_PHASES_PROVENANCE_H

#include "mlir/Pass/PassManager.h"

namespace partita {

/// Makes every pass of the manager carry provenance (dialects/Interfaces/Provenance.h) from the ops
/// that it finds to those that it builds from them. Every manager that runs passes on a program
/// needs it; add it after anything that prints IR.
void carryProvenance(mlir::PassManager &manager);

/// Until the manager ends, messages have a place in a file or none, but never a location's text.
void printPlainMessages(mlir::PassManager &manager);

/// Adds a last pass that removes facts from locations and leaves places and names.
void simplifyLocationsLast(mlir::PassManager &manager);

} // namespace partita

#endif // PARTITA_PHASES_PROVENANCE_H
