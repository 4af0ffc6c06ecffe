// What the nodes of a run send each other in a step, counted where messages are handed to MPI or TCP: the bytes that
// `partita explain --ranks-per-node` says beforehand.

#ifndef PARTITA_RT_COMMON_REPORT_NODES_SENT_H
#define PARTITA_RT_COMMON_REPORT_NODES_SENT_H

#include "common/mesh/census.h"

#include <optional>
#include <string>
#include <vector>

namespace partita_rt {

class NodesSent {
public:
  /// Notes what this rank sent in a step, unless it has noted one of a step that sends the same.
  void note(const Rank &rank, const SentBytes &step, int64_t number);
  /// Adds up the ranks of each node. All ranks call it.
  void gather(const Rank &rank);
  /// Prints a line for each part of training that the run had (Steps); nothing if all ranks are on one node, or if nobody knows
  /// their nodes.
  void print() const;

private:
  static constexpr int kParts = 3;
  struct OfPart {
    std::string when; ///< Steps::text()
    std::vector<SentBytes> nodes;
  };
  Steps steps[kParts];
  std::optional<SentBytes> own[kParts];
  std::vector<int> firsts; ///< by node, its lowest rank
  std::vector<OfPart> parts;
};

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_REPORT_NODES_SENT_H
