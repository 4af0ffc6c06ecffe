//===- Refusals.h - operators without a handler: what makes them, what to write instead -------===//
//
// Who exports from PyTorch has never seen the operator that is missing. A row says which PyTorch
// operation usually makes it, and how to write the model without it.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_OPERATORS_REFUSALS_H
#define PARTITA_LIB_IMPORT_OPERATORS_REFUSALS_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace partita::importer {

/// "'Unique' comes from torch.unique(), or max_norm of an embedding: ..."; empty if nothing is known about the operator.
std::string refusalHint(llvm::StringRef domain, llvm::StringRef type);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_OPERATORS_REFUSALS_H
