//===- TxActivation.cpp - see TxActivation.td -------------------------------------------------===//

#include "dialects/Interfaces/Floats.h"
#include "dialects/Interfaces/Scalar.h"
#include "dialects/Tx/GradientBuilder.h"
#include "dialects/Tx/Rounding.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace partita;
using namespace partita::tx;

#define GET_OP_CLASSES
#include "dialects/Tx/TxActivation.cpp.inc"
