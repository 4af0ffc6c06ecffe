// Counts what nodes send each other (nodes_sent.h).

#include "common/report/nodes_sent.h"

#include "common/grouped.h"
#include "common/mesh/gathered.h"
#include "common/report/summary.h"

#include <algorithm>

namespace partita_rt {

void NodesSent::note(const Rank &rank, const SentBytes &step, int64_t number) {
  Steps::Part part = stepsLike(*rank.stage, number).part;
  if (!own[part])
    own[part] = step;
  for (const Stage &stage : rank.program->stages) // this one may not tell steps apart
    if (Steps its = stepsLike(stage, number); its.part != Steps::All)
      steps[its.part] = its;
}

void NodesSent::gather(const Rank &rank) {
  struct Given {
    int64_t isKnown = 0, collectives = 0, messages = 0;
  };
  std::vector<Given> mine;
  for (const std::optional<SentBytes> &its : own)
    mine.push_back(its ? Given{1, its->collectives, its->messages} : Given());
  std::vector<Given> all = gathered(rank, mine, "the summary");
  if (!rank.nodes)
    return;
  for (int r = 0; r < rank.ranks; ++r)
    if (rank.nodes[r] == r)
      firsts.push_back(r);
  for (int part = 0; part < kParts; ++part) {
    OfPart its{steps[part].text(), std::vector<SentBytes>(firsts.size())};
    int known = 0;
    for (int r = 0; r < rank.ranks; ++r) {
      const Given *given = &all[size_t(r) * kParts];
      known += int(given[part].isKnown);
      // A stage whose steps are all alike has sent the same in this one.
      const Given &counted = given[part].isKnown ? given[part] : given[Steps::All];
      size_t node =
          size_t(std::lower_bound(firsts.begin(), firsts.end(), rank.nodes[r]) - firsts.begin());
      its.nodes[node].collectives += counted.collectives;
      its.nodes[node].messages += counted.messages;
    }
    if (part == Steps::All ? known == rank.ranks : known > 0)
      parts.push_back(std::move(its));
  }
}

void NodesSent::print() const {
  if (firsts.size() < 2)
    return;
  const char *label = "between nodes";
  auto line = [&](const OfPart &part, int64_t SentBytes::*which, const char *what) {
    int64_t sum = 0, most = -1;
    size_t busiest = 0;
    for (size_t n = 0; n < firsts.size(); ++n) {
      int64_t its = part.nodes[n].*which;
      sum += its;
      if (its > most)
        most = its, busiest = n;
    }
    int64_t nodes = int64_t(firsts.size());
    bool alike = most * nodes == sum;
    std::string text = (alike ? "each of " : "") + std::to_string(nodes) +
                       (alike ? " nodes sends " : " nodes send ") + grouped(sum / nodes) +
                       " bytes of " + what + " per step" + part.when;
    if (!alike)
      text +=
          " on average, the one of rank " + std::to_string(firsts[busiest]) + " " + grouped(most);
    writeLine(label, text);
    label = "";
  };
  for (const OfPart &part : parts)
    line(part, &SentBytes::collectives, "collectives");
  for (const OfPart &part : parts)
    if (std::any_of(part.nodes.begin(), part.nodes.end(),
                    [](const SentBytes &node) { return node.messages > 0; }))
      line(part, &SentBytes::messages, "messages between stages");
}

} // namespace partita_rt
