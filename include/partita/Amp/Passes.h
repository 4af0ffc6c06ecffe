//===- Passes.h - the passes of lib/Amp ---------------------------------------*- C++ -*-===//

#ifndef PARTITA_AMP_PASSES_H
#define PARTITA_AMP_PASSES_H

#include "mlir/Pass/Pass.h"
#include "partita/Support/PassStatistic.h"

namespace partita {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "partita/Amp/Passes.h.inc"
} // namespace partita

#endif // PARTITA_AMP_PASSES_H
