//===- ExplainText.h - why ranks communicate, for a reader --------------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_EXPLAIN_TEXT_H
#define PARTITA_TOOLS_EXPLAIN_TEXT_H

#include "partita/Analysis/Collectives.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace partita::tool {

/// Names come from model files: what a terminal would obey is shown as its code.
std::string printable(llvm::StringRef name);

/// "layer 3", "layers 0 to 11, each", "layers 0, 2, 4, each".
std::string layersText(llvm::ArrayRef<int64_t> layers);

/// The places in order, those layers as one that `signature` calls equal.
std::vector<std::vector<int64_t>> groupPlaces(llvm::ArrayRef<int64_t> places,
                                              llvm::function_ref<std::string(int64_t)> signature);

/// The census as a table: places by passes. Layers that are alike are one line.
void printCensus(llvm::raw_ostream &os, const analysis::Census &census);

/// Each collective with its node, the letter, the seed and what would remove it; layers that are
/// alike once, unless `all` are asked for.
void printReasons(llvm::raw_ostream &os, llvm::ArrayRef<analysis::Collective> collectives,
                  llvm::StringRef function, bool all);

} // namespace partita::tool

#endif // PARTITA_TOOLS_EXPLAIN_TEXT_H
