//===- partita-lsp-server.cpp - diagnostics, hovers and definitions in editors ----------------===//

#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "partita/Phases/RegisterAll.h"
#include "partita/Support/Version.h"

int main(int argc, char **argv) {
  partita::setVersionPrinter("partita-lsp-server");
  mlir::DialectRegistry registry;
  partita::registerEverything(registry);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
