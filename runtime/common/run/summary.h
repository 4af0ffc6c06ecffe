// The closing lines of a run: what was communicated and copied, and what memory it took.

#ifndef PARTITA_RT_COMMON_SUMMARY_H
#define PARTITA_RT_COMMON_SUMMARY_H

#include "common/mesh/census.h"
#include "partita_rt/comm.h"

#include <string>

namespace partita_rt {

struct RunOptions;

/// "label          text"
void writeLine(const char *label, const std::string &text);

/// What this rank issued in one step.
void printCollectives(const Rank &rank, const Issued &step);

/// What this rank sent and received in one step; prints nothing for a program without channels.
void printMessages(const Rank &rank, const Issued &step);

/// Bytes of sums made so far, over all axes and ranks. All ranks call it.
ReducedCount reducedByAll(Rank &rank);
/// How much of the collectives' work was done between kernels rather than in waits.
void printOverlap(const ReducedCount &reduced);

void printTransfers(const TransferBytes &step);

/// The memory that the compiler announced for a rank of each stage, and the process's own figures.
void printMemory(const Rank &rank, const RunOptions &options);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_SUMMARY_H
