//===- Amp.cpp - loss scaling -----------------------------------------------------------------===//

#include "dialects/Amp/Amp.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace partita;
using namespace partita::amp;

#include "dialects/Amp/AmpDialect.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Amp/AmpOps.cpp.inc"

void AmpDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Amp/AmpOps.cpp.inc"
      >();
}
