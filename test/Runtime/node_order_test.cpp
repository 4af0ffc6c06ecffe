// Ranks by node (common/mesh/node_order.h).

#include "common/mesh/node_order.h"

#include <gtest/gtest.h>

namespace partita_rt {
namespace {

/// Nodes are letters, by the launcher's number; ranks are digits, likewise.
TEST(NodeOrder, Table) {
  const struct {
    const char *nodes, *ranks;
  } rows[] = {
      {"", ""},         {"a", "0"},           {"aaaa", "0123"},
      {"aabb", "0123"}, {"bbaa", "0123"}, // nodes have the order of their first processes, whatever they are called
      {"abcd", "0123"}, {"aaab", "0123"}, // three and one: an axis of two crosses, which is only slower
      {"abbb", "0123"}, {"abab", "0213"},     {"abba", "0231"},
      {"abaa", "0312"}, {"abcabc", "024135"}, {"babbab", "041253"},
  };
  for (const auto &row : rows) {
    std::vector<std::string> nodes;
    for (const char *at = row.nodes; *at; ++at)
      nodes.emplace_back(1, *at);
    std::string ranks;
    for (int rank : meshRanks(nodes))
      ranks += std::to_string(rank);
    EXPECT_EQ(ranks, row.ranks) << row.nodes;
  }
}

TEST(NodeOrder, OnlyOtherNumbersAreSaid) {
  EXPECT_EQ(renumberedText({}), "");
  EXPECT_EQ(renumberedText({0, 1, 2}), "");
  EXPECT_EQ(renumberedText({0, 2, 1, 3}),
            "ranks are numbered host by host: ranks 0 to 3 are the launcher's 0, 2, 1, 3");
  std::vector<int> many;
  for (int i = 0; i < 20; ++i)
    many.push_back(i < 10 ? 2 * i : 2 * i - 19);
  EXPECT_EQ(renumberedText(many),
            "ranks are numbered host by host: ranks 0 to 19 are the launcher's "
            "0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 1, 3, 5, 7, 9, 11, ...");
}

} // namespace
} // namespace partita_rt
