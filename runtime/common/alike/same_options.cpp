// Compares what the ranks were started for (same_options.h).

#include "common/alike/same_options.h"
#include "common/alike/rank_facts.h"

namespace partita_rt {

std::string optionsText(const RunOptions &options, const Samples *data, const Samples *evalData) {
  RankFacts facts(options.given.begin(), options.given.end());
  for (auto [name, samples] : {std::pair("--data of", data), {"--eval-data of", evalData}})
    if (samples)
      facts.emplace_back(name, samples->identity());
  return factsText(facts);
}

std::string differingOptions(const std::vector<std::string> &texts) {
  std::optional<RankDifference> found = firstDifference(texts);
  if (!found)
    return "";
  auto has = [&](const std::optional<std::string> &value) {
    return (value ? " has " : " has no ") + found->name +
           (value && !value->empty() ? " " + *value : "");
  };
  return "ranks were started with different options: rank " + std::to_string(found->rank) + " on " +
         found->otherHost + has(found->other) + ", rank 0 on " + found->firstHost +
         has(found->first) + "; start all with the same";
}

} // namespace partita_rt
