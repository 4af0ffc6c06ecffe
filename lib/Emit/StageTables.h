//===- StageTables.h - prints the tables of one stage --------------------------------*- C++ -*-===//

#ifndef PARTITA_LIB_EMIT_STAGETABLES_H
#define PARTITA_LIB_EMIT_STAGETABLES_H

#include "mlir/IR/BuiltinOps.h"
#include <string>

namespace partita::emit {

/// Prints kCensus, kMessages and stage() (partita_rt/program.h) of a stage, or of a program without stages.
void printStageTables(mlir::ModuleOp stage, llvm::raw_ostream &os);

/// Prints `static const Type kName[] = {rows};`. Returns false, and prints nothing, if there are no rows.
bool printRows(llvm::StringRef type, llvm::StringRef name, llvm::ArrayRef<std::string> rows,
               llvm::raw_ostream &os);

} // namespace partita::emit

#endif // PARTITA_LIB_EMIT_STAGETABLES_H
