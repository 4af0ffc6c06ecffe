//===- Passes.h - the passes of lib/Autodiff ----------------------------------------*- C++ -*-===//

#ifndef PARTITA_AUTODIFF_PASSES_H
#define PARTITA_AUTODIFF_PASSES_H

#include "mlir/Pass/Pass.h"
#include "partita/Support/PassStatistic.h"

namespace partita {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "partita/Autodiff/Passes.h.inc"
} // namespace partita

#endif // PARTITA_AUTODIFF_PASSES_H
