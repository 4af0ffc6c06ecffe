//===- Report.h - what training a model would minimize, and why ---------------------*- C++ -*-===//

#ifndef PARTITA_OBJECTIVE_REPORT_H
#define PARTITA_OBJECTIVE_REPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

namespace partita {

/// What `--objective auto` chooses for an imported module.
struct ObjectiveReport {
  std::string objective;                                  ///< with its reason; "" if none fits
  std::string problem;                                    ///< why none fits
  std::string warning;                                    ///< what is odd about it, and where
  std::vector<std::pair<std::string, std::string>> roles; ///< of the inputs, by name

  void print(llvm::raw_ostream &os) const;
  llvm::json::Object toJson() const;
};

/// Runs `--objective auto` on a copy of the module.
ObjectiveReport reportObjective(mlir::ModuleOp module);

} // namespace partita

#endif // PARTITA_OBJECTIVE_REPORT_H
