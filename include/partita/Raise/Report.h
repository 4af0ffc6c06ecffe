//===- Report.h - what a module has to raise, and near misses -----------------------*- C++ -*-===//

#ifndef PARTITA_RAISE_REPORT_H
#define PARTITA_RAISE_REPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"
#include <map>

namespace partita {

/// The number of composites of an imported module raised to each op, and the near misses, by their
/// ONNX node's name, with the reason.
struct RaiseReport {
  std::map<std::string, unsigned> raised;                  ///< by op
  std::vector<std::pair<std::string, std::string>> nearly; ///< node, reason

  void print(llvm::raw_ostream &os) const;
  llvm::json::Object toJson() const;
};

/// Raises a copy of the module.
mlir::FailureOr<RaiseReport> reportRaising(mlir::ModuleOp module);

} // namespace partita

#endif // PARTITA_RAISE_REPORT_H
