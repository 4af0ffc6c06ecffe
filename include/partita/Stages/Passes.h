//===- Passes.h - the passes of lib/Stages -------------------------------------------*- C++ -*-===//

#ifndef PARTITA_STAGES_PASSES_H
#define PARTITA_STAGES_PASSES_H

#include "mlir/Pass/Pass.h"
#include "partita/Support/PassStatistic.h"

namespace partita {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "partita/Stages/Passes.h.inc"
} // namespace partita

#endif // PARTITA_STAGES_PASSES_H
