//===- MemoryPicture.h - memory over the ops of a step, as SVG ----------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_REPORT_MEMORYPICTURE_H
#define PARTITA_TOOLS_REPORT_MEMORYPICTURE_H

#include "partita/Memory/Ledger.h"
#include "llvm/Support/raw_ostream.h"

namespace partita::tool {

/// Draws a rank's memory at each op, stacked by kind, persistent memory at the bottom, with the
/// peak marked. The outline of each kind and those below it is a path whose coordinates are op
/// numbers and bytes; a transformation maps them to the page. If there are many ops, a column shows
/// the one with the most memory alive among several.
void drawMemory(llvm::raw_ostream &os, const memory::Ledger &ledger, llvm::StringRef title);

} // namespace partita::tool

#endif // PARTITA_TOOLS_REPORT_MEMORYPICTURE_H
