// Compares the ranks (rank_facts.h).

#include "common/alike/rank_facts.h"
#include "partita_rt/machine.h"
#include "partita_rt/printable.h"

#include <sstream>

namespace partita_rt {

std::string factsText(const RankFacts &facts) {
  std::string text = hostName() + "\n";
  for (const auto &[name, value] : facts)
    text += name + "\t" + printable(value) + "\n";
  return text;
}

static RankFacts factsIn(const std::string &text, std::string &host) {
  std::istringstream stream(text);
  std::getline(stream, host);
  RankFacts facts;
  for (std::string line; std::getline(stream, line);) {
    size_t tab = line.find('\t');
    facts.emplace_back(line.substr(0, tab), tab == std::string::npos ? "" : line.substr(tab + 1));
  }
  return facts;
}

static std::optional<std::string> valueIn(const RankFacts &facts, const std::string &name) {
  for (const auto &[its, value] : facts)
    if (its == name)
      return value;
  return std::nullopt;
}

std::optional<RankDifference> firstDifference(const std::vector<std::string> &texts) {
  RankDifference result;
  RankFacts first = factsIn(texts[0], result.firstHost);
  for (result.rank = 1; result.rank < texts.size(); ++result.rank) {
    RankFacts other = factsIn(texts[result.rank], result.otherHost), all = first;
    all.insert(all.end(), other.begin(), other.end());
    for (const auto &fact : all) {
      result.name = fact.first;
      result.first = valueIn(first, fact.first);
      result.other = valueIn(other, fact.first);
      if (result.first != result.other)
        return result;
    }
  }
  return std::nullopt;
}

} // namespace partita_rt
