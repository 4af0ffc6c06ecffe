//===- SavedValues.h - forward values in the backward pass --------------------------*- C++ -*-===//
#ifndef PARTITA_LIB_AUTODIFF_SAVEDVALUES_H
#define PARTITA_LIB_AUTODIFF_SAVEDVALUES_H

#include "dialects/Train/Train.h"
#include "mlir/IR/IRMapping.h"

namespace partita::autodiff {

/// Returns true if an op costs neither time nor memory: a constant, a view, `f`, a mark. Its results
/// are recomputed rather than saved.
bool isFree(mlir::Operation *op);

/// Returns a value for use in `loop`'s backward region. Values from outside the loop stay as they
/// are; values of the forward region are saved and become arguments. Results of free ops are
/// recomputed at the builder's insertion point, once for each `made`.
mlir::Value inBackward(mlir::OpBuilder &builder, train::AccumulateOp loop, mlir::Value value,
                       mlir::IRMapping &made);

} // namespace partita::autodiff

#endif // PARTITA_LIB_AUTODIFF_SAVEDVALUES_H
