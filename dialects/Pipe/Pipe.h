//===- Pipe.h - between pipeline stages ---------------------------------------------*- C++ -*-===//

#ifndef PARTITA_DIALECTS_PIPE_H
#define PARTITA_DIALECTS_PIPE_H

#include "dialects/Interfaces/Interfaces.h"
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

} // namespace partita::pipe

#endif // PARTITA_DIALECTS_PIPE_H
