//===- Passes.h - the passes of lib/Init ------------------------------------------*- C++ -*-===//

#ifndef PARTITA_INIT_PASSES_H
#define PARTITA_INIT_PASSES_H

#include "mlir/Pass/Pass.h"
#include "partita/Support/PassStatistic.h"

namespace partita {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "partita/Init/Passes.h.inc"
} // namespace partita

#endif // PARTITA_INIT_PASSES_H
