//===- BalanceTests.cpp - cuts are as good as the best of all possible ones ---------------------===//

#include "partita/Stages/Balance.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>
#include <numeric>
#include <random>

using namespace partita::stages;
using Cuts = std::vector<int64_t>;

static std::vector<Cuts> allWays(int64_t layers, int64_t ranges, Cuts begun = {0}) {
  if (static_cast<int64_t>(begun.size()) == ranges)
    return {begun};
  std::vector<Cuts> ways;
  for (int64_t next = begun.back() + 1; next < layers; ++next) {
    Cuts longer = begun;
    longer.push_back(next);
    for (Cuts &way : allWays(layers, ranges, longer))
      ways.push_back(std::move(way));
  }
  return ways;
}

static bool isAllowed(const Cuts &way, int64_t layers, const std::vector<TooMuch> &tooMuch) {
  return llvm::none_of(tooMuch, [&](const TooMuch &each) {
    int64_t end = each.range + 1 < static_cast<int64_t>(way.size()) ? way[each.range + 1] : layers;
    return way[each.range] <= each.begin && each.end <= end;
  });
}

/// The cost of the most expensive range, added up layer by layer.
static double largestOf(const Cuts &way, const LayerCosts &costs) {
  double largest = 0;
  for (size_t range = 0; range < way.size(); ++range) {
    size_t end = range + 1 < way.size() ? way[range + 1] : costs.own.size();
    double sum = std::accumulate(costs.own.begin() + way[range], costs.own.begin() + end, 0.);
    for (const LayerCosts::Shared &shared : costs.shared) {
      bool hasAny = false;
      for (int64_t layer = shared.first; layer <= shared.last; ++layer)
        hasAny |= way[range] <= layer && layer < static_cast<int64_t>(end);
      sum += hasAny ? shared.cost : 0;
    }
    largest = std::max(largest, sum);
  }
  return largest;
}

static int64_t moved(const Cuts &way, const Cuts &from) {
  int64_t sum = 0;
  for (auto [a, b] : llvm::zip(way, from))
    sum += std::abs(a - b);
  return sum;
}

/// With random costs, some of them shared by several layers, and random ranges that need too much, the
/// cuts are as good as the best that remain.
TEST(Balance, IsTheBestOfAllWays) {
  std::mt19937 random(7);
  auto number = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  int found = 0, none = 0;
  for (int i = 0; i < 300; ++i) {
    int64_t layers = number(2, 9), ranges = number(2, std::min<int64_t>(layers, 4));
    LayerCosts costs;
    for (int64_t layer = 0; layer < layers; ++layer)
      costs.own.push_back(static_cast<double>(number(1, 9)));
    for (int64_t n = number(0, 2); n > 0; --n) {
      int64_t first = number(0, layers - 1);
      costs.shared.push_back({first, number(first, layers - 1), static_cast<double>(number(1, 5))});
    }
    std::vector<TooMuch> tooMuch;
    for (int64_t n = number(0, 4); n > 0; --n) {
      int64_t begin = number(0, layers - 1);
      tooMuch.push_back({number(0, ranges - 1), begin, number(begin + 1, layers)});
    }
    std::vector<Cuts> ways = allWays(layers, ranges);
    Cuts from = ways[number(0, static_cast<int64_t>(ways.size()) - 1)];
    llvm::erase_if(ways, [&](const Cuts &way) { return !isAllowed(way, layers, tooMuch); });
    llvm::SmallVector<int64_t> balanced = balance(costs, ranges, tooMuch),
                               near = nearest(from, layers, tooMuch);
    ASSERT_EQ(balanced.empty(), ways.empty());
    ASSERT_EQ(near.empty(), ways.empty());
    (ways.empty() ? none : found) += 1;
    if (ways.empty())
      continue;
    Cuts mine(balanced.begin(), balanced.end()), close(near.begin(), near.end());
    EXPECT_TRUE(isAllowed(mine, layers, tooMuch));
    EXPECT_TRUE(isAllowed(close, layers, tooMuch));
    for (const Cuts &way : ways) {
      EXPECT_LE(largestOf(mine, costs), largestOf(way, costs));
      EXPECT_LE(moved(close, from), moved(way, from));
    }
  }
  EXPECT_GT(found, 100);
  EXPECT_GT(none, 10);
}

/// Work before and after the layers counts with the first and the last one; work once per step with
/// none.
TEST(Balance, EndsCountWithTheLayersBesideThem) {
  auto work = [](int64_t place, int64_t cost, int64_t parameters) {
    partita::LayerWork each;
    each.place = place;
    each.forwardCost = cost;
    each.backwardCost = 2 * cost;
    each.parameters = parameters;
    return each;
  };
  std::vector<partita::LayerWork> all = {work(-1, 1, 100), work(0, 10, 5), work(1, 10, 5),
                                         work(-2, 30, 0), work(-3, 1000, 0)};
  LayerCosts costs = costsOf(all, {{0, 1, 3, 4}});
  EXPECT_EQ(costs.own, (llvm::SmallVector<double>{33, 120}));
  ASSERT_EQ(costs.shared.size(), 1u);
  EXPECT_EQ(costs.shared[0].last, 1);
  EXPECT_EQ(costs.shared[0].cost, 7);
  EXPECT_EQ(parametersOf(all).own, (llvm::SmallVector<double>{105, 5}));
  EXPECT_TRUE(costsOf({}, {}).own.empty());
}
