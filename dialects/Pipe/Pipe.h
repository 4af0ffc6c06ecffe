//===- Pipe.h - communication between pipeline stages -------------------------------*- C++ -*-===//

#ifndef PARTITA_DIALECTS_PIPE_PIPE_H
#define PARTITA_DIALECTS_PIPE_PIPE_H

#include "dialects/Interfaces/Interfaces.h"
#include "dialects/Par/Par.h"
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

/// Returns the number of the stage that an op is in, or is; none outside stages.
std::optional<int64_t> stageOf(mlir::Operation *op);

/// Returns the number, in the program's mesh, of the axis that has `number` in the mesh of the op's
/// stage; the same number if there are no stages.
int64_t axisNumber(mlir::Operation *op, int64_t number);

/// Returns the positions of the op's program, before or after the cut; none for a program without
/// stages.
std::optional<Positions> positionsOf(mlir::Operation *op);

/// Returns true if the attribute is an i64 of at least `least`.
bool isI64From(int64_t least, mlir::Attribute attribute);

/// Checks that a list is ascending, not empty, and only has the program's stages (within a stage)
/// or positions (in the program of all stages).
mlir::LogicalResult verifyPositions(mlir::Operation *op, llvm::ArrayRef<int64_t> list);

/// Returns what positions are called in messages: stages, if each stage has one.
llvm::StringRef positionNoun(const Positions &layout);

/// Returns the stages of the positions; partial if several stages have a part. Everywhere stays
/// everywhere.
Holders onStages(const Holders &holders, const Positions &layout);

/// Returns all positions, as ops list them.
llvm::SmallVector<int64_t> allOf(const Positions &positions);

/// Returns the number of stages of the op's program; none outside stages.
std::optional<int64_t> stageCount(mlir::Operation *op);

/// Returns the location of a sum over stages, with a #par.cause of this role. It has no letter of a
/// rule, since stages split no letters.
mlir::Location withRole(mlir::Location loc, par::Role role);

/// Returns the stages of a program, in order; the program itself if it is not cut.
llvm::SmallVector<mlir::ModuleOp> stagesOf(mlir::ModuleOp program);

/// Returns the axes of the program's mesh with their sizes, outermost first, including that of the
/// stages.
llvm::SmallVector<std::pair<mlir::StringAttr, int64_t>> meshOf(mlir::ModuleOp program);

} // namespace partita::pipe

#endif // PARTITA_DIALECTS_PIPE_PIPE_H
