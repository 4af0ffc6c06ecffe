//===- Passes.h - memory phase ------------------------------------------------------*- C++ -*-===//

#ifndef PARTITA_MEMORY_PASSES_H
#define PARTITA_MEMORY_PASSES_H

#include "dialects/Par/Par.h"
#include "dialects/Rt/Rt.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "partita/Support/PassStatistic.h"

namespace partita {
#define GEN_PASS_DECL
#include "partita/Memory/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "partita/Memory/Passes.h.inc"
} // namespace partita

#endif // PARTITA_MEMORY_PASSES_H
