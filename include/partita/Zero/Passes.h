//===- Passes.h - the passes of lib/Zero ---------------------------------------*- C++ -*-===//

#ifndef PARTITA_ZERO_PASSES_H
#define PARTITA_ZERO_PASSES_H

#include "mlir/Pass/Pass.h"
#include "partita/Support/PassStatistic.h"

namespace partita {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "partita/Zero/Passes.h.inc"
} // namespace partita

#endif // PARTITA_ZERO_PASSES_H
