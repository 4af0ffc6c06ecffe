//===- StagesText.h - prints pipeline stages ----------------------------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_REPORT_STAGESTEXT_H
#define PARTITA_TOOLS_REPORT_STAGESTEXT_H

#include "partita/Analysis/Collectives.h"
#include "partita/Analysis/Flops.h"
#include "partita/Stages/Timeline.h"
#include "llvm/Support/raw_ostream.h"

namespace partita::tool {

/// Returns the layers of a stage's chunks, "layers 0 to 1 and 4 to 5", for an entry of the
/// manifest's "stages".
std::string layersOf(const llvm::json::Object &stage);

/// The layers of each chunk of this stage, from the manifest; none for a program without stages.
std::vector<analysis::LayerRange> layerRangesOf(const llvm::json::Object &manifest, int64_t stage);

/// Returns the function that is reported of a program with stages, by their messages: train_step, or
/// forward if there is none.
std::string mainFunctionOf(const llvm::json::Object &manifest);

/// Of each stage its layers, its part of the time and of the parameters; why they are cut there; and what crosses each
/// boundary per micro-batch. `assign` is --stages.
void printStages(llvm::raw_ostream &os, const llvm::json::Object &manifest,
                 const std::optional<stages::Timeline> &timeline, llvm::StringRef assign);

/// Prints the memory of each stage's ranks: persistent memory, arena and so on; nothing before it
/// is planned.
void printStageMemory(llvm::raw_ostream &os, const llvm::json::Object &manifest);

/// Prints the schedule as a row of slots per stage, aligned by the clock, with each stage's waits
/// and the bubble. Rows that are too long for a terminal continue below; the middle of very long
/// ones is left out, unless `all`. `waits`: stages wait for each other at the end of a step.
void printTimeline(llvm::raw_ostream &os, const stages::Timeline &timeline, bool waits, bool all);

} // namespace partita::tool

#endif // PARTITA_TOOLS_REPORT_STAGESTEXT_H
