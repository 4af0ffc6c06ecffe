#include "dialects/Interfaces/Interfaces.h"

using namespace mlir;

#include "dialects/Interfaces/Interfaces.cpp.inc"

int64_t partita::bytesOf(TypeRange tensors) {
  int64_t bytes = 0;
  for (Type type : tensors) {
    auto tensor = cast<RankedTensorType>(type);
    bytes += tensor.getNumElements() * ((tensor.getElementTypeBitWidth() + 7) / 8);
  }
  return bytes;
}
