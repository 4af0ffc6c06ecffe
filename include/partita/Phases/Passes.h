//===- Passes.h - the passes of lib/Phases ----------------------------------------*- C++ -*-===//

#ifndef PARTITA_PHASES_PASSES_H
#define PARTITA_PHASES_PASSES_H

#include "mlir/Pass/Pass.h"
#include "partita/Support/PassStatistic.h"

namespace partita {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "partita/Phases/Passes.h.inc"
} // namespace partita

#endif // PARTITA_PHASES_PASSES_H
