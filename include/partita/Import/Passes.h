//===- Passes.h - the passes of lib/Import ----------------------------------------*- C++ -*-===//

#ifndef PARTITA_IMPORT_PASSES_H
#define PARTITA_IMPORT_PASSES_H

#include "mlir/Pass/Pass.h"
#include "partita/Support/PassStatistic.h"

namespace partita {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "partita/Import/Passes.h.inc"
} // namespace partita

#endif // PARTITA_IMPORT_PASSES_H
