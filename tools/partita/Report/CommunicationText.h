//===- CommunicationText.h - prints who communicates what ---------------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_REPORT_COMMUNICATIONTEXT_H
#define PARTITA_TOOLS_REPORT_COMMUNICATIONTEXT_H

#include "partita/Analysis/Collectives.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace partita::tool {

/// Prints the communicators, and what each stage has and communicates; of a program without stages, what it
/// communicates. `all`: every collective and every group.
void printCommunication(llvm::raw_ostream &os, const llvm::json::Object &manifest,
                        llvm::ArrayRef<analysis::Collective> collectives, bool all);

/// Prints collectives as in the program's own census: added up by name, with the tensors.
void printCalls(llvm::raw_ostream &os, const llvm::json::Object &manifest);

/// Prints what a rank copies between device and host in a step, if it does.
void printTransfers(llvm::raw_ostream &os, const llvm::json::Object &manifest);

} // namespace partita::tool

#endif // PARTITA_TOOLS_REPORT_COMMUNICATIONTEXT_H
