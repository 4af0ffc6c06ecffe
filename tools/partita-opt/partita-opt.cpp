//===- partita-opt.cpp - any pass, any pipeline, any phase's IR -------------------------------===//

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "partita/Phases/PassesHelp.h"
#include "partita/Phases/RegisterAll.h"
#include "partita/Support/Version.h"

int main(int argc, char **argv) {
  partita::setVersionPrinter("partita-opt");
  mlir::DialectRegistry registry;
  partita::registerEverything(registry);
  llvm::StringRef only = argc == 2 ? argv[1] : "";
  if (only == "--help" || only == "-help" || only == "-h")
    partita::printPassesHelp(); // upstream's passes and options follow
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Partita's passes\n", registry));
}
