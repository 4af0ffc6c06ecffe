//===- StagesText.h - pipeline stages, for a reader ---------------------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_STAGES_TEXT_H
#define PARTITA_TOOLS_STAGES_TEXT_H

#include "partita/Analysis/Collectives.h"
#include "partita/Analysis/Flops.h"
#include "tools/partita/Report/Timeline.h"
#include "llvm/Support/raw_ostream.h"

namespace partita::tool {

/// "layers 0 to 1 and 4 to 5": those of a stage's chunks, of an entry of the manifest's "stages".
std::string layersOf(const llvm::json::Object &stage);

/// The layers of each chunk of this stage, from the manifest; none for a program without stages.
std::vector<analysis::LayerRange> layerRangesOf(const llvm::json::Object &manifest, int64_t stage);

/// Of each stage its layers, its part of the work and of the parameters; why they are cut there; and what crosses each
/// boundary per micro-batch. `assign` is --stages.
void printStages(llvm::raw_ostream &os, const llvm::json::Object &manifest, llvm::StringRef assign);

/// What each stage's ranks need: persistent memory, arena and so on; nothing before it is planned.
void printStageMemory(llvm::raw_ostream &os, const llvm::json::Object &manifest);

/// The schedule as a row of slots for each stage, one above the other by the clock, what each stage waits, and the
/// bubble. Rows that are too long for a terminal go on below; of very long ones the middle is left out, unless `all`
/// is asked for.
void printTimeline(llvm::raw_ostream &os, const Timeline &timeline, bool all);

} // namespace partita::tool

#endif // PARTITA_TOOLS_STAGES_TEXT_H
