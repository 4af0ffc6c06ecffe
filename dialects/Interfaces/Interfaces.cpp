#include "dialects/Interfaces/Interfaces.h"

using namespace mlir;

#include "dialects/Interfaces/Interfaces.cpp.inc"
