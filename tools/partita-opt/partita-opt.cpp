//===- partita-opt.cpp - any pass, any pipeline, any phase's IR -------------------------------===//

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "partita/Pipelines/RegisterAll.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  partita::registerEverything(registry);
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Partita's passes\n", registry));
}
