//===- LossOutput.h - does a model compute its loss itself? -------------------------*- C++ -*-===//
#ifndef PARTITA_LIB_OBJECTIVE_LOSSOUTPUT_H
#define PARTITA_LIB_OBJECTIVE_LOSSOUTPUT_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <optional>
#include <string>

namespace partita::objective {

/// An output that is a loss, and how one sees it.
struct LossOutput {
  unsigned index;
  std::string reason;
};

/// The result of @forward that is one floating-point number, computed from a parameter, and that
/// - is a cross-entropy with what an input has, or
/// - depends on an input that no result of several numbers depends on: the labels; or
/// - stands alone: there is no result of several numbers.
/// Of several the one that others are parts of, then the first.
std::optional<LossOutput> findLossOutput(mlir::func::FuncOp forward);

} // namespace partita::objective

#endif // PARTITA_LIB_OBJECTIVE_LOSSOUTPUT_H
