//===- MemoryText.h - the ledger of memory, for a reader ----------------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_MEMORY_TEXT_H
#define PARTITA_TOOLS_MEMORY_TEXT_H

#include "partita/Memory/Ledger.h"
#include "llvm/Support/raw_ostream.h"

namespace partita::tool {

/// What persists and, where there is a ledger, what the arena holds by kind at the peak and at most,
/// and where the peak is; `memory` is the manifest's entry.
void printMemorySummary(llvm::raw_ostream &os, const llvm::json::Object &memory,
                        const memory::Ledger *ledger);

/// The same, then activations by layer and the largest that live at the peak. Layers that are alike
/// are one line, and ten buffers are listed, unless `all` are asked for.
void printMemory(llvm::raw_ostream &os, const llvm::json::Object &memory,
                 const memory::Ledger &ledger, bool all);

/// "op 37 of 113, backward, layer 1: /h.1/mlp/MatMul (tx.matmul)".
std::string momentText(const memory::Ledger &ledger);

} // namespace partita::tool

#endif // PARTITA_TOOLS_MEMORY_TEXT_H
