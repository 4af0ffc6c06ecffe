//===- MemoryText.h - prints the memory ledger --------------------------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_REPORT_MEMORYTEXT_H
#define PARTITA_TOOLS_REPORT_MEMORYTEXT_H

#include "partita/Memory/Ledger.h"
#include "llvm/Support/raw_ostream.h"

namespace partita::tool {

/// Prints persistent memory and, if there is a ledger, the arena's memory by kind, at the peak and
/// at most, and the location of the peak; `memory` is the manifest's entry.
void printMemorySummary(llvm::raw_ostream &os, const llvm::json::Object &memory,
                        const memory::Ledger *ledger);

/// Prints the summary, then activations by layer and the largest buffers alive at the peak. Unless
/// `all`, equal layers share a line, and ten buffers are listed.
void printMemory(llvm::raw_ostream &os, const llvm::json::Object &memory,
                 const memory::Ledger &ledger, bool all);

/// "op 37 of 113, backward, layer 1: /h.1/mlp/MatMul (tx.matmul)".
std::string momentText(const memory::Ledger &ledger);

} // namespace partita::tool

#endif // PARTITA_TOOLS_REPORT_MEMORYTEXT_H
