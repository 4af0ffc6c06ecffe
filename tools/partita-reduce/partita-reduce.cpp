//===- partita-reduce.cpp - the smallest module that a script finds interesting ---------------===//
//
//     partita-reduce failing.mlir --reduce-program=test=./still_fails -o small.mlir
//
// The script gets a file's name; it exits with 1 where the module in it still fails, with 0 where it does not.
//
//===------------------------------------------------------------------------------------------===//

#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"
#include "partita/Phases/RegisterAll.h"
#include "partita/Support/Version.h"
#include "tools/partita-reduce/ReduceProgram.h"

int main(int argc, char **argv) {
  partita::setVersionPrinter("partita-reduce");
  mlir::DialectRegistry registry;
  partita::registerEverything(registry);
  partita::registerReduceProgramPass();
  mlir::MLIRContext context(registry);
  return mlir::failed(mlir::mlirReduceMain(argc, argv, context));
}
