//===- LevelsText.h - what nodes send, within and between ---------------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_REPORT_LEVELSTEXT_H
#define PARTITA_TOOLS_REPORT_LEVELSTEXT_H

#include "partita/Analysis/Collectives.h"
#include "runtime/include/partita_rt/node_traffic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <optional>
#include <string>
#include <vector>

namespace partita::tool {

/// Returns the ranks of each group of a manifest's communicator, in the order of their first ranks. Ranks are numbered with
/// the last axis of the mesh varying fastest.
std::vector<std::vector<int64_t>> rankGroups(const llvm::json::Object &manifest,
                                             const llvm::json::Object &communicator);

using partita_rt::LevelBytes;

/// What a node sends in a call of a function: the mean over the nodes.
struct LevelTable {
  struct Row {
    bool backward;
    std::string what; ///< kind, axis, type: "all_gather over dp of int8"
    LevelBytes sent;
  };
  std::string function;
  int64_t ranksPerNode, nodes;
  bool overRings;        ///< else the ranks of a node share memory
  analysis::Steps steps; ///< in which it is sent
  std::vector<Row> rows;
  LevelBytes all;     ///< their sum
  LevelBytes busiest; ///< the same of the node that sends the others most
  /// The same without ZeRO++'s compression, if that was asked for.
  std::optional<LevelBytes> exact;
};

/// Returns a table for each phase of training (phasesOf). A node is `ranksPerNode` consecutive ranks. On CPUs they send what NodeTraffic says, and
/// the runtime counts (partita_rt/node_traffic.h). On other targets collectives are rings in the order of their ranks: of B bytes over n
/// ranks, each rank sends its neighbour (n - 1)/n B for a gather or a reduce-scatter, twice that for an all-reduce, B for a shift, and B/n
/// to every other for an all-to-all. Messages between pipeline stages are not counted.
std::vector<LevelTable> levelsOf(const llvm::json::Object &manifest,
                                 llvm::ArrayRef<analysis::Collective> collectives,
                                 llvm::StringRef function, int64_t ranksPerNode);

void printLevels(llvm::raw_ostream &os, const LevelTable &table);
llvm::json::Object levelsToJson(const LevelTable &table);

} // namespace partita::tool

#endif // PARTITA_TOOLS_REPORT_LEVELSTEXT_H
