//===- Report.h - what would be raised in a module, and what nearly would -----------*- C++ -*-===//

#ifndef PARTITA_RAISE_REPORT_H
#define PARTITA_RAISE_REPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"
#include <map>

namespace partita {

/// How many composites of an imported module became which op, and each one that came close, by its
/// ONNX node's name, with the reason.
struct RaiseReport {
  std::map<std::string, unsigned> raised;                  ///< by op
  std::vector<std::pair<std::string, std::string>> nearly; ///< node, what is in the way

  void print(llvm::raw_ostream &os) const;
  llvm::json::Object toJson() const;
};

/// Raises a copy of the module.
mlir::FailureOr<RaiseReport> reportRaising(mlir::ModuleOp module);

} // namespace partita

#endif // PARTITA_RAISE_REPORT_H
