//===- Passes.h - the passes of lib/Verify ----------------------------------------*- C++ -*-===//

#ifndef PARTITA_VERIFY_PASSES_H
#define PARTITA_VERIFY_PASSES_H

#include "mlir/Pass/Pass.h"
#include "partita/Support/PassStatistic.h"

namespace partita {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "partita/Verify/Passes.h.inc"
} // namespace partita

#endif // PARTITA_VERIFY_PASSES_H
