//===- ProgramTables.h - what the tables say of inputs, outputs and updates ---------*- C++ -*-===//

#ifndef PARTITA_LIB_LOWER_PROGRAMTABLES_H
#define PARTITA_LIB_LOWER_PROGRAMTABLES_H

#include "partita/Analysis/Collectives.h"
#include "partita/Analysis/Transfers.h"
#include "partita/Lower/Lowering.h"

namespace partita::rt {

/// What becomes the module's #rt.program.
struct ProgramTables {
  llvm::SmallVector<mlir::Attribute> inputs, outputs, collectives, undecayed, messages;
  llvm::SmallVector<CommunicatorAttr> communicators;
  llvm::SmallVector<ChannelAttr> channels;
  std::vector<analysis::CensusRow> census;
  mlir::NamedAttrList hyper;
  llvm::StringRef optimizer = "none";
  int64_t accumulate = 1;
  analysis::Transfers transfers;
  /// Of the lowered module. An error where it issues a collective that the census lacks.
  mlir::FailureOr<ProgramAttr> asAttribute(mlir::ModuleOp module, llvm::StringRef lrSchedule);
};

/// Reads the functions' signatures and returns; notes in `shared` which input each argument is.
/// Reports an input that no one knows how to fill.
mlir::FailureOr<ProgramTables> collectTables(mlir::ModuleOp module, ModuleLowering &shared);

} // namespace partita::rt

#endif // PARTITA_LIB_LOWER_PROGRAMTABLES_H
