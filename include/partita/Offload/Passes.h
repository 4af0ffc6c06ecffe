//===- Passes.h - the passes of lib/Offload ------------------------------------*- C++ -*-===//

#ifndef PARTITA_OFFLOAD_PASSES_H
#define PARTITA_OFFLOAD_PASSES_H

#include "mlir/Pass/Pass.h"
#include "partita/Support/PassStatistic.h"

namespace partita {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "partita/Offload/Passes.h.inc"
} // namespace partita

#endif // PARTITA_OFFLOAD_PASSES_H
