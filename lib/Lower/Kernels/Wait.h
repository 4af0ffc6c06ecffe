//===- Wait.h - the model of every op that completes a start ------------------------*- C++ -*-===//

#ifndef PARTITA_LIB_LOWER_KERNELS_WAIT_H
#define PARTITA_LIB_LOWER_KERNELS_WAIT_H

#include "dialects/Offload/Offload.h"
#include "partita/Lower/Lowering.h"

namespace partita::rt {

/// A result stands where what the start filled does, or is copied from there.
template <typename Op> struct WaitModel : KernelInterface::ExternalModel<WaitModel<Op>, Op> {
  llvm::SmallVector<unsigned> inPlaceOperands(mlir::Operation *op, unsigned result) const {
    if (worksInOperands(op))
      return {};
    return {result + 1};
  }
  Space resultSpace(mlir::Operation *op, unsigned result) const {
    return offload::isOnHost(op->getResult(result)) ? Space::Pinned : Space::Arena;
  }
  llvm::StringRef resultName(mlir::Operation *op, unsigned result) const {
    return worksInOperands(op) ? llvm::cast<KernelInterface>(startOf(op)).resultName(result) : "";
  }
  llvm::LogicalResult lower(mlir::Operation *op, Lowering &l) const { return lowerWait(op, l); }

private:
  static mlir::Operation *startOf(mlir::Operation *op) {
    return llvm::cast<AsyncWaitInterface>(op).getStart(); // there is one, by the wait's verifier
  }
  static bool worksInOperands(mlir::Operation *op) {
    return llvm::cast<AsyncStartInterface>(startOf(op)).worksInOperands();
  }
};

} // namespace partita::rt

#endif // PARTITA_LIB_LOWER_KERNELS_WAIT_H
