//===- Report.h - what a raising pass did and nearly did, as remarks ----------------*- C++ -*-===//

#ifndef PARTITA_LIB_RAISE_REPORT_H
#define PARTITA_LIB_RAISE_REPORT_H

#include "mlir/IR/Location.h"
#include "mlir/IR/Operation.h"
#include "mlir/Pass/Pass.h"

namespace partita::raise {

/// Counts always, speaks when asked to.
class Report {
public:
  Report(llvm::StringRef composite, bool remarks, mlir::Pass::Statistic &raised,
         mlir::Pass::Statistic &missed)
      : composite(composite), remarks(remarks), raised(raised), missed(missed) {}

  void accept(mlir::Location loc, llvm::StringRef op) {
    ++raised;
    if (remarks)
      mlir::emitRemark(loc) << node(loc) << "raised to " << op;
  }
  void reject(mlir::Location loc, const llvm::Twine &reason) {
    ++missed;
    if (remarks)
      mlir::emitRemark(loc) << node(loc) << "nearly " << composite << ": " << reason;
  }

private:
  /// The ONNX node's name, which a location's file and line do not tell.
  static std::string node(mlir::Location loc) {
    auto name = llvm::dyn_cast<mlir::NameLoc>(loc);
    return name ? name.getName().str() + ": " : "";
  }

  llvm::StringRef composite;
  bool remarks;
  mlir::Pass::Statistic &raised, &missed;
};

} // namespace partita::raise

#endif // PARTITA_LIB_RAISE_REPORT_H
