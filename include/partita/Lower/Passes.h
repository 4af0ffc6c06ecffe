//===- Passes.h - lower phase -------------------------------------------------------*- C++ -*-===//

#ifndef PARTITA_LOWER_PASSES_H
#define PARTITA_LOWER_PASSES_H

#include "dialects/Par/Par.h"
#include "dialects/Rt/Rt.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "partita/Support/PassStatistic.h"

namespace partita {
#define GEN_PASS_DECL
#include "partita/Lower/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "partita/Lower/Passes.h.inc"
} // namespace partita

#endif // PARTITA_LOWER_PASSES_H
