// The mesh: coordinates of ranks, groups and channels, independent of the transport.

#ifndef PARTITA_RT_COMMON_MESH_MESH_H
#define PARTITA_RT_COMMON_MESH_MESH_H

#include "partita_rt/program.h"

#include <string>
#include <vector>

namespace partita_rt {

/// "dp=2,tp=2", or "one rank".
std::string meshText(const Program &program);

/// Returns the product of the axes' sizes.
int rankCount(const Program &program);

/// " of stage 1", for messages and reports; "" for a program with one stage.
std::string ofStage(const Program &program, int stage);

/// Returns "rank 2", or "rank 2 of stage 1" in a program with several stages.
std::string rankText(const Program &program, int rank);

/// "slot 4 (forward of h.2, micro-batch 1"; "" for none. What a slot is at changes, so its end, with
/// the parenthesis, is a text of its own.
std::string slotText(const Slot &slot);
/// ", layer 7)". Writes no more than kSlotEnd characters, with a zero, and allocates nothing.
constexpr size_t kSlotEnd = 40;
void slotEnd(int32_t layer, char *text);

/// Returns "slot 4 (...): ", for the start of an error of the rank, if it is at a slot.
std::string atSlot(const Rank &rank);

/// Sets rank, ranks, coordinates and stage: the last axis varies fastest.
void setCoordinates(Rank &rank, const Program &program, int number);

/// A rank's group of one row.
struct Membership {
  int row;
  const char *name;
  std::vector<int> ranks; ///< ascending; empty if the rank is in none
  int position = -1;      ///< of the rank
  int size() const { return int(ranks.size()); }
};

/// Returns one per row, in the rows' order, which is the same on all ranks.
std::vector<Membership> membershipsOf(const Rank &rank);

/// One end of a channel, as its rank sees it.
struct ChannelEndpoint {
  int row;
  const char *name;
  bool sends;
  int self, peer;                 ///< ranks
  std::string selfText, peerText; ///< "rank 2 of stage 1"
};

/// Returns one per channel that the rank is at an end of, in the order of their rows.
std::vector<ChannelEndpoint> channelsOf(const Rank &rank);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_MESH_MESH_H
