//===- ProgramTables.h - what the tables say of inputs, outputs and updates ---------*- C++ -*-===//

#ifndef PARTITA_LIB_LOWER_PROGRAMTABLES_H
#define PARTITA_LIB_LOWER_PROGRAMTABLES_H

#include "partita/Lower/Lowering.h"

namespace partita::rt {

/// The module's `rt.program`:
///   inputs   [{name, role, type, batched, filler, vocabulary}]   type: one micro-batch of one
///   rank, with its placement outputs  [{name, type, offset}] collectives [{function, kind, axis,
///   reason, tensors, calls, bytes}]   per call of the function hyper    {beta1, ...} accumulate,
///   optimizer explained [JSON text of an analysis::Collective]
struct ProgramTables {
  llvm::SmallVector<mlir::Attribute> inputs, outputs;
  mlir::NamedAttrList entries;
  mlir::DictionaryAttr asAttribute(mlir::ModuleOp module);
};

/// Reads the functions' signatures and returns; notes in `shared` which input each argument is.
/// Reports an input that no one knows how to fill.
mlir::FailureOr<ProgramTables> collectTables(mlir::ModuleOp module, ModuleLowering &shared);

} // namespace partita::rt

#endif // PARTITA_LIB_LOWER_PROGRAMTABLES_H
