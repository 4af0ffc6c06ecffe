//===- HtmlReport.h - a program and its run as one page -----------------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_REPORT_HTMLREPORT_H
#define PARTITA_TOOLS_REPORT_HTMLREPORT_H

#include "partita/Analysis/Collectives.h"
#include "tools/partita/Report/RunLog.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace partita::tool {

/// Writes one self-contained HTML page, which needs no network: the run's loss, learning rate, loss
/// scale and time by kind of work (null: no log); and the program's memory over the step, work by
/// layer, communication (the manifest's `collectives`), and plan.
void writeHtmlReport(llvm::raw_ostream &os, const llvm::json::Object &manifest,
                     std::vector<analysis::Collective> collectives, const RunLog *run);

} // namespace partita::tool

#endif // PARTITA_TOOLS_REPORT_HTMLREPORT_H
