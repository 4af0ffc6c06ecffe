//===- Passes.h - the passes of lib/Fuse --------------------------------------------*- C++ -*-===//

#ifndef PARTITA_FUSE_PASSES_H
#define PARTITA_FUSE_PASSES_H

#include "mlir/Pass/Pass.h"
#include "partita/Support/PassStatistic.h"

namespace partita {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "partita/Fuse/Passes.h.inc"
} // namespace partita

#endif // PARTITA_FUSE_PASSES_H
