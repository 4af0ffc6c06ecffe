//===- SchedulePicture.h - a pipeline's schedule as SVG -----------------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_REPORT_SCHEDULEPICTURE_H
#define PARTITA_TOOLS_REPORT_SCHEDULEPICTURE_H

#include "partita/Stages/Timeline.h"
#include "llvm/Support/raw_ostream.h"

namespace partita::tool {

/// Draws a row per stage with its slots from begin to end, on a clock of op costs. A slot's element
/// has its name, begin and end as data.
void drawSchedule(llvm::raw_ostream &os, const stages::Timeline &timeline, llvm::StringRef title);

} // namespace partita::tool

#endif // PARTITA_TOOLS_REPORT_SCHEDULEPICTURE_H
