//===- RunLog.h - the log of a run --------------------------------------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_REPORT_RUNLOG_H
#define PARTITA_TOOLS_REPORT_RUNLOG_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/JSON.h"
#include <optional>
#include <string>
#include <vector>

namespace partita::tool {

/// The output of 'partita run --log FILE.csv': a header line, then a line per step with numbers or
/// empty cells. Columns are identified by name; older logs lack the later ones.
struct RunLog {
  std::vector<std::string> columns;
  std::vector<std::vector<std::optional<double>>> rows; ///< one cell per column

  /// Returns one column's cells, in the order of the steps; empty if the log lacks the column.
  std::vector<std::optional<double>> column(llvm::StringRef name) const;

  /// Reads a file; returns the problem, or "".
  std::string read(llvm::StringRef path);
};

/// Returns the unit of the log's tokens_per_second: "tokens", or "samples" for a program that reads
/// no sequence of tokens.
llvm::StringRef unitOf(const llvm::json::Object &manifest);

} // namespace partita::tool

#endif // PARTITA_TOOLS_REPORT_RUNLOG_H
