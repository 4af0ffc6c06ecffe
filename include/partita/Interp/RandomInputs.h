//===- RandomInputs.h - random arguments of functions -------------------------------*- C++ -*-===//

#ifndef PARTITA_INTERP_RANDOMINPUTS_H
#define PARTITA_INTERP_RANDOMINPUTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Interp/Tensor.h"

namespace partita::interp {

/// On an argument: `interp.range = [low, high]`, from which its numbers are drawn uniformly;
/// integers include both ends.
inline constexpr llvm::StringLiteral kRange = "interp.range";

/// Returns full, reproducible values for the function's arguments: in `interp.range` if an argument
/// has one, else standard normal numbers and the integers 0 to 3. An argument that is not a tensor
/// of static shape is an error.
mlir::FailureOr<llvm::SmallVector<Tensor>> randomInputs(mlir::func::FuncOp function, uint64_t seed);

} // namespace partita::interp

#endif // PARTITA_INTERP_RANDOMINPUTS_H
