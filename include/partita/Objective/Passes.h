//===- Passes.h - the passes of lib/Objective ---------------------------------------*- C++ -*-===//

#ifndef PARTITA_OBJECTIVE_PASSES_H
#define PARTITA_OBJECTIVE_PASSES_H

#include "mlir/Pass/Pass.h"
#include "partita/Support/PassStatistic.h"

namespace partita {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "partita/Objective/Passes.h.inc"
} // namespace partita

#endif // PARTITA_OBJECTIVE_PASSES_H
