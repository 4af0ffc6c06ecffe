//===- SavedValues.h - what the backward pass gets of the forward pass --------------*- C++ -*-===//
#ifndef PARTITA_LIB_AUTODIFF_SAVEDVALUES_H
#define PARTITA_LIB_AUTODIFF_SAVEDVALUES_H

#include "dialects/Train/Train.h"
#include "mlir/IR/IRMapping.h"

namespace partita::autodiff {

/// Does an op cost neither time nor memory: a constant, a view, `f`? Its results are not saved but
/// made again.
bool isFree(mlir::Operation *op);

/// A value as ops of `loop`'s backward region use it: one from outside itself, one of the forward
/// region an argument, and so saved. What is free is made again at the builder's insertion point,
/// once for each `made`.
mlir::Value inBackward(mlir::OpBuilder &builder, train::AccumulateOp loop, mlir::Value value,
                       mlir::IRMapping &made);

} // namespace partita::autodiff

#endif // PARTITA_LIB_AUTODIFF_SAVEDVALUES_H
