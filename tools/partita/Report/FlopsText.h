//===- FlopsText.h - each layer's FLOPs, parameters and messages --------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_REPORT_FLOPSTEXT_H
#define PARTITA_TOOLS_REPORT_FLOPSTEXT_H

#include "partita/Analysis/Collectives.h"
#include "partita/Analysis/Flops.h"
#include "llvm/Support/raw_ostream.h"

namespace partita::tool {

/// Prints a table by layers, equal ones as one: parameters, FLOPs of a step's forward and backward
/// pass (all ranks together), and the bytes that a rank communicates in a step; without a training
/// step, those of one forward pass. Ends with the sum and the formula.
void printFlops(llvm::raw_ostream &os, llvm::ArrayRef<LayerWork> work,
                llvm::ArrayRef<analysis::Collective> collectives, bool trains);

} // namespace partita::tool

#endif // PARTITA_TOOLS_REPORT_FLOPSTEXT_H
