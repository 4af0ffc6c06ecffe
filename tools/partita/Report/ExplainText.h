//===- ExplainText.h - prints why ranks communicate ---------------------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_REPORT_EXPLAINTEXT_H
#define PARTITA_TOOLS_REPORT_EXPLAINTEXT_H

#include "partita/Analysis/Collectives.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace partita::tool {

/// Escapes control characters: names come from model files.
std::string printable(llvm::StringRef name);
/// That of a key, or "".
std::string textIn(const llvm::json::Object &object, llvm::StringRef key);

/// "layer 3", "layers 0 to 11, each", "layers 0, 2, 4, each".
std::string layersText(llvm::ArrayRef<int64_t> layers);

/// Groups places in order; layers with equal `signature` form one group.
std::vector<std::vector<int64_t>> groupPlaces(llvm::ArrayRef<int64_t> places,
                                              llvm::function_ref<std::string(int64_t)> signature);

/// Prints the census of a function's collectives as a table of places by passes, and each collective
/// with its node, the letter, the seed and how to remove it. Equal layers share a line; of reasons
/// not if `all`. The collectives are those of one stage, with the layers in `ranges`.
void explainCollectives(llvm::raw_ostream &os, llvm::ArrayRef<analysis::Collective> collectives,
                        llvm::StringRef function, llvm::ArrayRef<analysis::LayerRange> ranges,
                        bool all);

} // namespace partita::tool

#endif // PARTITA_TOOLS_REPORT_EXPLAINTEXT_H
