//===- Passes.h - phase raise: decomposed composites into one op each ---------------*- C++ -*-===//

#ifndef PARTITA_RAISE_PASSES_H
#define PARTITA_RAISE_PASSES_H

#include "mlir/Pass/Pass.h"
#include "partita/Support/PassStatistic.h"

namespace partita {
#define GEN_PASS_DECL
#include "partita/Raise/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "partita/Raise/Passes.h.inc"
} // namespace partita

#endif // PARTITA_RAISE_PASSES_H
