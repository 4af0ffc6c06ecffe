// The closing lines of a run: data communicated and copied, and memory used.

#ifndef PARTITA_RT_COMMON_REPORT_SUMMARY_H
#define PARTITA_RT_COMMON_REPORT_SUMMARY_H

#include "common/mesh/census.h"
#include "partita_rt/comm.h"

#include <string>

namespace partita_rt {

struct RunOptions;

/// Writes "label          text".
void writeLine(const char *label, const std::string &text);

/// Prints what this rank issued in one step, and in which steps it does; `last`: the run's last step.
void printCollectives(const Rank &rank, const Issued &step, const Steps &steps, int64_t last);

/// Prints what this rank sent and received in one step; nothing for a program without channels.
void printMessages(const Rank &rank, const Issued &step);

/// Returns the bytes of sums computed so far, over all axes and ranks. All ranks call it.
ReducedCount reducedByAll(Rank &rank);
/// Prints how much of the collectives' work was done between kernels rather than in waits.
void printOverlap(const ReducedCount &reduced);

/// Prints how many bytes a step has copied between device and host, each way, as rank 0's summary; nothing if it has copied
/// none. `step`: of one step of this rank.
void printTransfers(const TransferBytes &step);

/// Prints the memory that the compiler announced for a rank of each stage, and the process's own
/// figures.
void printMemory(const Rank &rank, const RunOptions &options);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_REPORT_SUMMARY_H
