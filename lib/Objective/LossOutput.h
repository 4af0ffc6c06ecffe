//===- LossOutput.h - finds out whether a model computes its loss -------------------*- C++ -*-===//
#ifndef PARTITA_LIB_OBJECTIVE_LOSSOUTPUT_H
#define PARTITA_LIB_OBJECTIVE_LOSSOUTPUT_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <optional>
#include <string>

namespace partita::objective {

/// An output that is a loss, and how this was recognized.
struct LossOutput {
  unsigned index;
  std::string reason;
};

/// Returns the result of @forward that is one floating-point number, depends on a parameter, and
/// - is a cross-entropy with an input, or
/// - depends on an input that no result with several numbers depends on (the labels), or
/// - is the only kind of result: no result has several numbers.
/// If there are several, returns the one that others are parts of, then the first.
std::optional<LossOutput> findLossOutput(mlir::func::FuncOp forward);

} // namespace partita::objective

#endif // PARTITA_LIB_OBJECTIVE_LOSSOUTPUT_H
