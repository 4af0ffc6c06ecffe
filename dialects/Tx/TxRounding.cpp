//===- TxRounding.cpp - see TxRounding.td -----------------------------------------------------===//

#include "dialects/Interfaces/Scalar.h"
#include "dialects/Tx/GradientBuilder.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace partita;
using namespace partita::tx;

#define GET_OP_CLASSES
#include "dialects/Tx/TxRounding.cpp.inc"
