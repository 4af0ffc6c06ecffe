//===- LevelsText.h - what nodes send, within and between ---------------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_REPORT_LEVELSTEXT_H
#define PARTITA_TOOLS_REPORT_LEVELSTEXT_H

#include "partita/Analysis/Collectives.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace partita::tool {

/// Returns the ranks of each group of a manifest's communicator, in the order of their first ranks. Ranks are numbered with
/// the last axis of the mesh varying fastest.
std::vector<std::vector<int64_t>> rankGroups(const llvm::json::Object &manifest,
                                             const llvm::json::Object &communicator);

/// Bytes that all ranks together send in a call of a function, by whether they leave a node.
struct LevelBytes {
  int64_t within = 0, between = 0;
  LevelBytes &operator+=(const LevelBytes &other) {
    within += other.within, between += other.between;
    return *this;
  }
};

/// Collectives as rings in the order of their ranks, the fewest bytes there are: of B bytes over n ranks, each rank sends its
/// neighbour (n - 1)/n B for a gather or a reduce-scatter, twice that for an all-reduce, B for a shift, and B/n to every other
/// for an all-to-all. A node is so many consecutive ranks. Messages between pipeline stages are not counted.
LevelBytes levelsOf(const llvm::json::Object &manifest,
                    llvm::ArrayRef<analysis::Collective> collectives, llvm::StringRef function,
                    int64_t ranksPerNode);

/// Prints what a node sends in a call of the function, by direction, kind and axis, and in all. `exact` are the collectives of the same
/// plan without ZeRO++'s compression, and their manifest, if there is any: their sum is printed beside it.
void printLevels(llvm::raw_ostream &os, const llvm::json::Object &manifest,
                 llvm::ArrayRef<analysis::Collective> collectives, llvm::StringRef function,
                 int64_t ranksPerNode, llvm::ArrayRef<analysis::Collective> exact,
                 const llvm::json::Object *exactManifest);

} // namespace partita::tool

#endif // PARTITA_TOOLS_REPORT_LEVELSTEXT_H
