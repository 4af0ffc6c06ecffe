//===- RandomInputs.h - arguments to try a function on ------------------------------*- C++ -*-===//

#ifndef PARTITA_INTERP_RANDOMINPUTS_H
#define PARTITA_INTERP_RANDOMINPUTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Interp/Tensor.h"

namespace partita::interp {

/// On an argument: `interp.range = [low, high]`, the numbers that it is drawn from, evenly;
/// integers include both ends.
inline constexpr llvm::StringLiteral kRange = "interp.range";

/// Full values for the function's arguments, reproducible: within `interp.range` where an argument
/// has one, else standard normal numbers and the integers 0 to 3. An argument that is no tensor of
/// static shape is an error.
mlir::FailureOr<llvm::SmallVector<Tensor>> randomInputs(mlir::func::FuncOp function, uint64_t seed);

} // namespace partita::interp

#endif // PARTITA_INTERP_RANDOMINPUTS_H
