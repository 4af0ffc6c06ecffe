//===- PassesHelp.h - help for the passes, by phase, in running order ---------------*- C++ -*-===//

#ifndef PARTITA_PHASES_PASSESHELP_H
#define PARTITA_PHASES_PASSESHELP_H

namespace partita {

/// Prints every phase's pipeline, with the plan options that it reads, and its passes with their
/// options, to standard output. All must be registered.
void printPassesHelp();

} // namespace partita

#endif // PARTITA_PHASES_PASSESHELP_H
