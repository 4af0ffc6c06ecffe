// Ranks that differ from rank 0: builds and options.

#include "common/alike/rank_facts.h"
#include "common/alike/same_build.h"
#include "common/alike/same_options.h"
#include "partita_rt/machine.h"

#include <gtest/gtest.h>

namespace partita_rt {
namespace {

std::string on(const char *host, const RankFacts &facts) {
  return host + factsText(facts).substr(hostName().size());
}

TEST(RankFacts, EqualRanks) {
  std::string text = factsText({{"mesh", "dp=2"}});
  EXPECT_EQ(text, hostName() + "\nmesh\tdp=2\n");
  EXPECT_FALSE(firstDifference({text}));
  EXPECT_FALSE(firstDifference({text, on("b", {{"mesh", "dp=2"}}), text})); // hosts may differ
}

TEST(RankFacts, AValueMayContainAnything) {
  EXPECT_EQ(differingOptions({on("a", {{"--log", "a\n--lr\t1"}}), on("b", {{"--log", "b"}})}),
            "ranks were started with different options: rank 1 on b has --log b, rank 0 on a has "
            "--log a\\x0A--lr\\x091; start all with the same");
}

TEST(RankFacts, TheLowestRankAndItsFirstDifference) {
  RankFacts first{{"program", "gpt2"}, {"mesh", "dp=4"}, {"executable", "7 bytes"}};
  RankFacts other{{"program", "gpt2"}, {"mesh", "dp=2"}, {"executable", "8 bytes"}};
  EXPECT_EQ(differingBuilds({on("a", first), on("a", first), on("b", other), on("c", {})}),
            "ranks run programs of different builds: the mesh of rank 0 on a is dp=4, that of rank "
            "2 on b is dp=2; start the same build everywhere");
}

TEST(RankFacts, OptionsThatOneHasAndTheOtherHasNot) {
  EXPECT_EQ(differingOptions({on("a", {{"--lr", "0.1"}}), on("b", {{"--lr", "0.5"}})}),
            "ranks were started with different options: rank 1 on b has --lr 0.5, rank 0 on a has "
            "--lr 0.1; start all with the same");
  EXPECT_EQ(differingOptions({on("a", {{"--lr", "0.1"}}), on("b", {})}),
            "ranks were started with different options: rank 1 on b has no --lr, rank 0 on a has "
            "--lr 0.1; start all with the same");
  EXPECT_EQ(differingOptions({on("a", {}), on("b", {{"--no-eval", ""}})}),
            "ranks were started with different options: rank 1 on b has --no-eval, rank 0 on a has "
            "no --no-eval; start all with the same");
}

} // namespace
} // namespace partita_rt
