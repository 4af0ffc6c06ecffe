//===- PackedBias.h - does attention's bias stay right where documents begin anew? --*- C++ -*-===//

#ifndef PARTITA_LIB_OBJECTIVE_PACKEDBIAS_H
#define PARTITA_LIB_OBJECTIVE_PACKEDBIAS_H

#include "dialects/Tx/Tx.h"
#include "partita/Raise/IndexEvaluator.h"

namespace partita::objective {

/// In a row that packs documents, a bias [b or 1, h or 1, s or 1, s or 1] is right if it depends on the distance of
/// query and key alone, up to a number per query, which softmax does not see (ALiBi, Press et al., arXiv 2108.12409, may
/// depend on the key alone; relative positions). Evaluates it in every element of small sequences, in some queries of
/// long ones; `evaluator` knows the inputs' values, and parameters are taken for arbitrary numbers. Returns what is
/// wrong, or "". Without `causal`, the bias must hide later keys.
std::string problemOfPackedBias(mlir::Value bias, int64_t sequence, bool causal,
                                raise::IndexEvaluator evaluator);

} // namespace partita::objective

#endif // PARTITA_LIB_OBJECTIVE_PACKEDBIAS_H
