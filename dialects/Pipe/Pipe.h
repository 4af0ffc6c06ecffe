//===- Pipe.h - between pipeline stages ---------------------------------------------*- C++ -*-===//

#ifndef PARTITA_DIALECTS_PIPE_H
#define PARTITA_DIALECTS_PIPE_H

#include "dialects/Interfaces/Interfaces.h"
#include "dialects/Pipe/Positions.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include <optional>

#include "dialects/Pipe/PipeDialect.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Pipe/PipeAttrs.h.inc"
#define GET_OP_CLASSES
#include "dialects/Pipe/PipeOps.h.inc"

namespace partita::pipe {

/// The number of the stage that an op is of, or is; none outside stages.
std::optional<int64_t> stageOf(mlir::Operation *op);

/// The number in the program's mesh of the axis that has `number` in the mesh of the op's stage; the same
/// where there are no stages.
int64_t axisNumber(mlir::Operation *op, int64_t number);

/// Of the program around the op, cut into stages or to be cut; none of a program without stages.
std::optional<Positions> positionsOf(mlir::Operation *op);

/// All of them, as ops list them.
llvm::SmallVector<int64_t> allOf(const Positions &positions);

/// How many stages the program has of which the op's is one; none outside stages.
std::optional<int64_t> stageCount(mlir::Operation *op);

/// The location of a sum over stages: the role of #par.cause that says why there is one. No letter of a
/// rule does, for stages split ops.
mlir::Location withRole(mlir::Location loc, llvm::StringRef role);

/// The stages of a program, in order; of a program that is not cut into any, the program.
llvm::SmallVector<mlir::ModuleOp> stagesOf(mlir::ModuleOp program);

/// The axes of the program's mesh with their sizes, outermost first: those of a stage's ranks, and that
/// of the stages.
llvm::SmallVector<std::pair<mlir::StringAttr, int64_t>> meshOf(mlir::ModuleOp program);

} // namespace partita::pipe

#endif // PARTITA_DIALECTS_PIPE_H
