//===- ExplainText.h - why ranks exchange, for a reader -----------------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_EXPLAIN_TEXT_H
#define PARTITA_TOOLS_EXPLAIN_TEXT_H

#include "partita/Analysis/Collectives.h"
#include "llvm/Support/raw_ostream.h"

namespace partita::tool {

/// Names come from model files: what a terminal would obey is shown as its code.
std::string printable(llvm::StringRef name);

/// The census as a table: places by passes. Layers that are alike are one line.
void printCensus(llvm::raw_ostream &os, const analysis::Census &census);

/// Each collective with its node, the letter, the seed and what would remove it; layers that are
/// alike once, unless `all` are asked for.
void printReasons(llvm::raw_ostream &os, llvm::ArrayRef<analysis::Collective> collectives,
                  llvm::StringRef function, bool all);

} // namespace partita::tool

#endif // PARTITA_TOOLS_EXPLAIN_TEXT_H
