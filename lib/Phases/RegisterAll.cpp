//===- RegisterAll.cpp - everything that a tool of Partita knows ------------------------------===//
//
// Dialects are named here; the folders' passes are a list that CMake writes (partita_passes).
//
//===------------------------------------------------------------------------------------------------===//

#include "partita/Phases/RegisterAll.h"
#include "dialects/Amp/Amp.h"
#include "dialects/Offload/Offload.h"
#include "dialects/Par/Par.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Rt/Rt.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "dialects/Zero/Zero.h"
#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/Dialect/Func/Extensions/InlinerExtension.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/Passes.h"
#include "partita/Lower/Lowering.h"
#include "partita/Phases/PassFolders.h.inc"
#include "partita/Phases/Phases.h"

void partita::registerEverything(mlir::DialectRegistry &registry) {
  registry.insert<mlir::func::FuncDialect, mlir::emitc::EmitCDialect, tx::TxDialect,
                  train::TrainDialect, par::ParDialect, zero::ZeroDialect, offload::OffloadDialect,
                  amp::AmpDialect, pipe::PipeDialect, rt::RtDialect>();
  rt::registerKernelModels(registry);
  mlir::func::registerInlinerExtension(registry);
  mlir::registerTransformsPasses();
#define PARTITA_PASS_FOLDER(Folder) register##Folder##Passes();
#include "partita/Phases/PassFolders.def"
  registerPhases();
}
