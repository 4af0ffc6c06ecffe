//===- HtmlReport.h - a program and its run as one page -----------------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_HTML_REPORT_H
#define PARTITA_TOOLS_HTML_REPORT_H

#include "partita/Analysis/Collectives.h"
#include "tools/partita/Report/RunLog.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace partita::tool {

/// Writes one HTML page that needs nothing else, no network either: of the run (null: no log) its
/// loss, learning rate, loss scale and time by kind of work; of the program memory over the step,
/// work by layer, what is communicated (`collectives`, of the manifest), and the plan.
void writeHtmlReport(llvm::raw_ostream &os, const llvm::json::Object &manifest,
                     std::vector<analysis::Collective> collectives, const RunLog *run);

} // namespace partita::tool

#endif // PARTITA_TOOLS_HTML_REPORT_H
