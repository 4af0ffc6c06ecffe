//===- MemoryPicture.h - memory over the ops of a step, as SVG ----------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_MEMORY_PICTURE_H
#define PARTITA_TOOLS_MEMORY_PICTURE_H

#include "partita/Memory/Ledger.h"
#include "llvm/Support/raw_ostream.h"

namespace partita::tool {

/// Draws what a rank's memory holds at each op, stacked by kind, persistent memory below, with the
/// peak marked. The outline of each kind and those below it is a path whose coordinates are numbers
/// of ops and bytes; a transformation brings them onto the page. Of many ops one column shows
/// several: the one among them at which most is alive.
void drawMemory(llvm::raw_ostream &os, const memory::Ledger &ledger, llvm::StringRef title);

} // namespace partita::tool

#endif // PARTITA_TOOLS_MEMORY_PICTURE_H
