// Compares the collectives, messages and copies that a step issued with those that the compiler
// announced: a difference is a bug in one of the two.

#ifndef PARTITA_RT_COMMON_MESH_CENSUS_H
#define PARTITA_RT_COMMON_MESH_CENSUS_H

#include "partita_rt/channel.h"
#include "partita_rt/comm.h"
#include "partita_rt/transfer.h"

#include <string>
#include <utility>
#include <vector>

namespace partita_rt {

/// Bytes that a rank has sent to ranks of other nodes.
struct SentBytes {
  int64_t collectives = 0, messages = 0;
};

/// Calls and bytes of collectives by group and kind, messages by channel, copied bytes, and bytes that
/// left the node: since the start, or since an earlier point.
struct Issued {
  struct OfName {
    int ranks = 0; ///< in the rank's group; 0 if it is in none
    CollectiveCount counts[kCollectiveKinds];
  };
  std::vector<std::pair<std::string, OfName>> groups; ///< in the order of their first rows
  std::vector<MessageCount> messages; ///< by row; zero if the rank is at neither end
  TransferBytes transfers;
  SentBytes sent;
  explicit Issued(const Rank &rank);
  /// Returns the difference from earlier counts of the same rank.
  Issued since(const Issued &before) const;
};

/// Returns the messages over a channel that the stage announces.
MessageCount announcedMessages(const Stage &stage, int channel);

/// Throws Error if one step differs from the stage's census, or from its announced messages or
/// transfers.
/// `number` is that of the update that the step makes.
void checkCensus(const Rank &rank, const Issued &step, int64_t number);
/// Returns the steps that issue the same as this update: all of them, but for optimizers with exact steps.
Steps stepsLike(const Stage &stage, int64_t step);
/// Returns the last update, from this one on, until which all steps issue the same.
int64_t endOfPhase(const Stage &stage, int64_t step);
void checkMessages(const Rank &rank, const Issued &step);
/// Throws Error if the ends of a channel have started different messages so far, for transports
/// that do not compare them (NCCL). All ranks call it.
void compareEnds(Rank &rank);
void checkTransfers(const Rank &rank, const TransferBytes &step);
/// Throws Error if a collective, a message or a copy was started and not waited for.
void checkNothingUnderWay(const Rank &rank);

/// Returns the census as text: every collective and message of a step, with its reason.
std::string censusText(const Program &program);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_MESH_CENSUS_H
