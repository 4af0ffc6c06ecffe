//===- Sums.h - matches sums of different stages --------------------------------------*- C++ -*-===//
//
// After the cut, only their order determines which `pipe.sum` of one stage matches which of
// another. So each keeps the number that it had in the program of all stages: equal ops of one
// stage (sums of zeros, if the stage has no term) stay distinct, and what passes did to the stages
// one by one can be checked.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_PIPE_SUMS_H
#define PARTITA_DIALECTS_PIPE_SUMS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::pipe {

/// On a `pipe.sum` of a stage: its number among those of the program's function, an i64.
inline constexpr llvm::StringLiteral kSumNumber = "pipe.number";

/// Numbers the sums of a function of all stages, before the cut.
void numberSums(mlir::func::FuncOp function);

/// Checks that any two stages of the program share the same sums, in the same order.
mlir::LogicalResult verifySums(mlir::ModuleOp program);

} // namespace partita::pipe

#endif // PARTITA_DIALECTS_PIPE_SUMS_H
