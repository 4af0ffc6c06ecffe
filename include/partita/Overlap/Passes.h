//===- Passes.h - the passes of lib/Overlap -----------------------------------------*- C++ -*-===//

#ifndef PARTITA_OVERLAP_PASSES_H
#define PARTITA_OVERLAP_PASSES_H

#include "mlir/Pass/Pass.h"
#include "partita/Support/PassStatistic.h"

namespace partita {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "partita/Overlap/Passes.h.inc"
} // namespace partita

#endif // PARTITA_OVERLAP_PASSES_H
