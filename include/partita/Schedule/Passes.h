//===- Passes.h - the passes of lib/Schedule -----------------------------------------*- C++ -*-===//

#ifndef PARTITA_SCHEDULE_PASSES_H
#define PARTITA_SCHEDULE_PASSES_H

#include "mlir/Pass/Pass.h"
#include "partita/Support/PassStatistic.h"

namespace partita {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "partita/Schedule/Passes.h.inc"
} // namespace partita

#endif // PARTITA_SCHEDULE_PASSES_H
