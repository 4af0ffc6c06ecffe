//===- Remarks.h - what a raising pass did and nearly did, as remarks ---------------*- C++ -*-===//

#ifndef PARTITA_LIB_RAISE_REMARKS_H
#define PARTITA_LIB_RAISE_REMARKS_H

#include "mlir/IR/Operation.h"
#include "partita/Support/PassStatistic.h"

namespace partita::raise {

/// Counts always, speaks when asked to. RaiseReport.cpp reads the remarks.
class Report {
public:
  Report(llvm::StringRef composite, bool remarks, PassStatistic &raised, PassStatistic &missed)
      : composite(composite), remarks(remarks), raised(raised), missed(missed) {}

  void accept(mlir::Location loc, llvm::StringRef op) {
    ++raised;
    if (remarks)
      mlir::emitRemark(loc) << "raised to " << op;
  }
  void reject(mlir::Location loc, const llvm::Twine &reason) {
    ++missed;
    if (remarks)
      mlir::emitRemark(loc) << "nearly " << composite << ": " << reason;
  }

private:
  llvm::StringRef composite;
  bool remarks;
  PassStatistic &raised, &missed;
};

} // namespace partita::raise

#endif // PARTITA_LIB_RAISE_REMARKS_H
