//===- RunLog.h - the log of a run --------------------------------------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_RUN_LOG_H
#define PARTITA_TOOLS_RUN_LOG_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/JSON.h"
#include <optional>
#include <string>
#include <vector>

namespace partita::tool {

/// What 'partita run --log FILE.csv' wrote: a header line, a line per step, numbers or nothing in
/// the cells. Columns are known by their names; older logs lack the later ones.
struct RunLog {
  std::vector<std::string> columns;
  std::vector<std::vector<std::optional<double>>> rows; ///< as many cells as columns

  /// One column's cells, in the order of the steps; empty where the log has no such column.
  std::vector<std::optional<double>> column(llvm::StringRef name) const;

  /// Reads a file; returns what is wrong with it, or nothing.
  std::string read(llvm::StringRef path);
};

/// What the log's tokens_per_second counts, as the run does: "tokens", or "samples" of a program
/// that reads no sequence of tokens.
llvm::StringRef unitOf(const llvm::json::Object &manifest);

} // namespace partita::tool

#endif // PARTITA_TOOLS_RUN_LOG_H
