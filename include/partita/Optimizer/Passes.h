//===- Passes.h - the passes of lib/Optimizer ---------------------------------------*- C++ -*-===//

#ifndef PARTITA_OPTIMIZER_PASSES_H
#define PARTITA_OPTIMIZER_PASSES_H

#include "mlir/Pass/Pass.h"
#include "partita/Support/PassStatistic.h"

namespace partita {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "partita/Optimizer/Passes.h.inc"
} // namespace partita

#endif // PARTITA_OPTIMIZER_PASSES_H
