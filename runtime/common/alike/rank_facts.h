// What a rank reports of itself, so that all ranks can be compared with rank 0.

#ifndef PARTITA_RT_COMMON_ALIKE_RANK_FACTS_H
#define PARTITA_RT_COMMON_ALIKE_RANK_FACTS_H

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace partita_rt {

/// Names and values, the most telling first. A value may contain anything; names no tabs or line breaks.
using RankFacts = std::vector<std::pair<std::string, std::string>>;

/// Returns this rank's facts and host, for the other ranks; what cannot be printed in a value as \xNN.
std::string factsText(const RankFacts &facts);

/// A rank that differs from rank 0, and in what.
struct RankDifference {
  size_t rank;
  std::string name;
  std::optional<std::string> first, other; ///< values of rank 0 and of this rank; none: has no such
  std::string firstHost, otherHost;
};

/// `texts`: all ranks'. Returns the first difference of the lowest rank that differs.
std::optional<RankDifference> firstDifference(const std::vector<std::string> &texts);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_ALIKE_RANK_FACTS_H
