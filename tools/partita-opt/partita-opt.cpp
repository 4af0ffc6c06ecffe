//===- partita-opt.cpp - any pass, any pipeline, any phase's IR --------------------------------------===//

#include "dialects/Par/Par.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::func::FuncDialect, partita::tx::TxDialect, partita::train::TrainDialect, partita::par::ParDialect>();
  mlir::registerTransformsPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Partita's passes\n", registry));
}
