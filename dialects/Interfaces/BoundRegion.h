//===- BoundRegion.h - the syntax of ops whose region has one argument per operand --*- C++ -*-===//
//
//     %r = train.accumulate (%a = %x, %b = %y) : (T, U) -> V { ... }
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_BOUNDREGION_H
#define PARTITA_DIALECTS_BOUNDREGION_H

#include "mlir/IR/OpImplementation.h"

namespace partita {

/// Parses all of it but the terminator's default; `argumentType` gives the type of the region's
/// argument from its operand's, or null after it reported an error.
mlir::ParseResult parseBoundRegion(mlir::OpAsmParser &parser, mlir::OperationState &result,
                                   llvm::function_ref<mlir::Type(mlir::Type)> argumentType);
void printBoundRegion(mlir::OpAsmPrinter &printer, mlir::Operation *op);

} // namespace partita

#endif // PARTITA_DIALECTS_BOUNDREGION_H
