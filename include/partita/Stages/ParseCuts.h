//===- ParseCuts.h - the layers at which a user cuts a model ------------------------*- C++ -*-===//

#ifndef PARTITA_STAGES_PARSECUTS_H
#define PARTITA_STAGES_PARSECUTS_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>

namespace partita::stages {

/// Parses "4,8", what follows "cuts:": the first layer of each stage, or chunk, but the first one.
/// Returns none and sets `problem` if these are no ascending numbers of layers.
std::optional<llvm::SmallVector<int64_t>> parseCuts(llvm::StringRef text, std::string &problem);

/// Returns "cuts:4,8" for the first layers of all stages, or chunks, the first one's included.
std::string cutsText(llvm::ArrayRef<int64_t> firsts);

} // namespace partita::stages

#endif // PARTITA_STAGES_PARSECUTS_H
