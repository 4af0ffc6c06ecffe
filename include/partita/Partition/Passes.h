//===- Passes.h - the passes of lib/Partition ---------------------------------------*- C++ -*-===//

#ifndef PARTITA_PARTITION_PASSES_H
#define PARTITA_PARTITION_PASSES_H

#include "mlir/Pass/Pass.h"
#include "partita/Support/PassStatistic.h"

namespace partita {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "partita/Partition/Passes.h.inc"
} // namespace partita

#endif // PARTITA_PARTITION_PASSES_H
