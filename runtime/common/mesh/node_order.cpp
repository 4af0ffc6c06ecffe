// Orders ranks by node (node_order.h).

#include "common/mesh/node_order.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace partita_rt {

std::vector<int> meshRanks(const std::vector<std::string> &nodes) {
  std::map<std::string, size_t> firsts;
  for (size_t i = 0; i < nodes.size(); ++i)
    firsts.emplace(nodes[i], i);
  std::vector<size_t> order(nodes.size()); // the launcher's numbers, by rank
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return firsts[nodes[a]] < firsts[nodes[b]]; });
  std::vector<int> ranks(nodes.size());
  for (size_t rank = 0; rank < order.size(); ++rank)
    ranks[order[rank]] = int(rank);
  return ranks;
}

std::string renumberedText(const std::vector<int> &launched) {
  if (std::is_sorted(launched.begin(), launched.end()))
    return "";
  constexpr size_t kMost = 16;
  std::string text;
  for (size_t r = 0; r < launched.size() && r < kMost; ++r)
    text += (r ? ", " : "") + std::to_string(launched[r]);
  return "ranks are numbered host by host: ranks 0 to " + std::to_string(launched.size() - 1) +
         " are the launcher's " + text + (launched.size() > kMost ? ", ..." : "");
}

} // namespace partita_rt
