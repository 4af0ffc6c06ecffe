//===- RtKernels.cpp - see RtKernels.td -------------------------------------------------------===//

#include "dialects/Rt/Rt.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

#define GET_OP_CLASSES
#include "dialects/Rt/RtKernels.cpp.inc"
