//===- BoundRegion.h - syntax of ops with one region argument per operand -----------*- C++ -*-===//
//
//     %r = train.accumulate (%a = %x, %b = %y) : (T, U) -> V { ... }
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_INTERFACES_BOUNDREGION_H
#define PARTITA_DIALECTS_INTERFACES_BOUNDREGION_H

#include "mlir/IR/OpImplementation.h"

namespace partita {

/// Parses the op except for a default terminator. `argumentType` returns the type of a region's
/// argument for its operand's, or null after it has reported an error. `more` parses what comes
/// between the types and the region, and may add arguments to the region; `behind` parses what
/// comes between the region and the attributes.
mlir::ParseResult parseBoundRegion(
    mlir::OpAsmParser &parser, mlir::OperationState &result,
    llvm::function_ref<mlir::Type(mlir::Type)> argumentType,
    llvm::function_ref<mlir::ParseResult(llvm::SmallVectorImpl<mlir::OpAsmParser::Argument> &)>
        more = {},
    llvm::function_ref<mlir::ParseResult()> behind = {});
void printBoundRegion(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                      llvm::function_ref<void()> more = {}, llvm::function_ref<void()> behind = {},
                      llvm::ArrayRef<llvm::StringRef> elided = {});

} // namespace partita

#endif // PARTITA_DIALECTS_INTERFACES_BOUNDREGION_H
