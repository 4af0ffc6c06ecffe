//===- Norm.h - what is said of normalizations without importing them ---------------*- C++ -*-===//
#ifndef PARTITA_LIB_IMPORT_OPERATORS_NORM_H
#define PARTITA_LIB_IMPORT_OPERATORS_NORM_H

#include "llvm/ADT/StringRef.h"

namespace partita::importer {

constexpr llvm::StringLiteral kBatchNormTraining =
    "is in training mode, which is not supported: export the model in inference mode (model.eval())";

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_OPERATORS_NORM_H
