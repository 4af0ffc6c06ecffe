//===- Tables.h - prints the constant tables of a program ---------------------------*- C++ -*-===//

#ifndef PARTITA_LIB_EMIT_TABLES_H
#define PARTITA_LIB_EMIT_TABLES_H

#include "mlir/IR/BuiltinOps.h"
#include "partita/Emit/Emit.h"
#include "llvm/ADT/SmallVector.h"

namespace partita::emit {

/// Prints kMesh, kInputs, kParameters, ... and program() (partita_rt/program.h). Reports what a
/// table cannot express.
mlir::LogicalResult printTables(mlir::ModuleOp module, const EmitOptions &options,
                                llvm::raw_ostream &os);

/// Returns the namespace of a stage's functions and tables; "" if the program has no stages.
std::string stageSpace(mlir::ModuleOp stage);

/// Returns the compute capability that a GPU must have for all stages, times 10; 0 if any will do.
int64_t leastCapability(llvm::ArrayRef<mlir::ModuleOp> stages);

/// A file with initial values, as import found it.
struct KnownFile {
  std::string name; ///< relative to the model's folder
  int64_t bytes;
  std::string fingerprint; ///< 16 hexadecimal digits
};
llvm::SmallVector<KnownFile> knownFiles(mlir::ModuleOp module);

/// Returns an attribute of the module that an earlier pass must have set; reports its absence.
template <typename Attr> Attr required(mlir::ModuleOp module, llvm::StringRef name) {
  Attr attribute = module->getAttrOfType<Attr>(name);
  if (!attribute)
    mlir::emitError(module.getLoc())
        << "has no attribute '" << name << "'; run plan-memory and lower-to-rt first";
  return attribute;
}

} // namespace partita::emit

#endif // PARTITA_LIB_EMIT_TABLES_H
