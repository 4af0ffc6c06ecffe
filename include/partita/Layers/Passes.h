//===- Passes.h - the passes of lib/Layers ----------------------------------------*- C++ -*-===//

#ifndef PARTITA_LAYERS_PASSES_H
#define PARTITA_LAYERS_PASSES_H

#include "mlir/Pass/Pass.h"
#include "partita/Support/PassStatistic.h"

namespace partita {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "partita/Layers/Passes.h.inc"
} // namespace partita

#endif // PARTITA_LAYERS_PASSES_H
