//===- BalanceTests.cpp - cuts are as good as the best of all possible ones ---------------------===//

#include "partita/Stages/Balance.h"
#include "partita/Stages/Spans.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>
#include <map>
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

/// The cost of the most expensive range, if `costs` has that of the layers [begin, end) as any range.
using Costs = std::map<std::pair<int64_t, int64_t>, double>;
static double largestOf(const Cuts &way, int64_t layers, const Costs &costs) {
  double largest = 0;
  for (size_t range = 0; range < way.size(); ++range) {
    int64_t end = range + 1 < way.size() ? way[range + 1] : layers;
    largest = std::max(largest, costs.at({way[range], end}));
  }
  return largest;
}

static int64_t moved(const Cuts &way, const Cuts &from) {
  int64_t sum = 0;
  for (auto [a, b] : llvm::zip(way, from))
    sum += std::abs(a - b);
  return sum;
}

/// With random costs of ranges, and random ranges that need too much, the
/// cuts are as good as the best that remain.
TEST(Balance, IsTheBestOfAllWays) {
  std::mt19937 random(7);
  auto number = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  int found = 0, none = 0;
  for (int i = 0; i < 300; ++i) {
    int64_t layers = number(2, 9), ranges = number(2, std::min<int64_t>(layers, 4));
    Costs costs;
    for (int64_t begin = 0; begin < layers; ++begin)
      for (int64_t end = begin + 1; end <= layers; ++end)
        costs[{begin, end}] = static_cast<double>(number(1, 9) * (end - begin));
    auto costOf = [&](int64_t, int64_t begin, int64_t end) { return costs.at({begin, end}); };
    std::vector<TooMuch> tooMuch;
    for (int64_t n = number(0, 4); n > 0; --n) {
      int64_t begin = number(0, layers - 1);
      tooMuch.push_back({number(0, ranges - 1), begin, number(begin + 1, layers)});
    }
    std::vector<Cuts> ways = allWays(layers, ranges);
    Cuts from = ways[number(0, static_cast<int64_t>(ways.size()) - 1)];
    llvm::erase_if(ways, [&](const Cuts &way) { return !isAllowed(way, layers, tooMuch); });
    llvm::SmallVector<int64_t> balanced = balance(layers, ranges, costOf, tooMuch),
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
      EXPECT_LE(largestOf(mine, layers, costs), largestOf(way, layers, costs));
      EXPECT_LE(moved(close, from), moved(way, from));
    }
  }
  EXPECT_GT(found, 100);
  EXPECT_GT(none, 10);
}

/// Parameters before and after the layers count with the first and the last one; those of what runs
/// once per step with none.
TEST(Balance, EndsCountWithTheLayersBesideThem) {
  auto work = [](int64_t place, int64_t parameters) {
    partita::LayerWork each;
    each.place = place;
    each.parameters = parameters;
    return each;
  };
  std::vector<partita::LayerWork> all = {work(-1, 9), work(0, 1),  work(1, 4),    work(2, 4),
                                         work(3, 1),  work(-2, 3), work(-3, 1000)};
  EXPECT_EQ(balanceParameters(all, 2), (llvm::SmallVector<int64_t>{0, 1})); // 10 and 12
  all.back().place = 3;
  EXPECT_EQ(balanceParameters(all, 2), (llvm::SmallVector<int64_t>{0, 3}));
}

/// Costs of ranges follow from those of spans of one and two layers: here each layer has a cost, the
/// ends of a stage have one, what layers 1 to 3 need costs a stage with any of them 7, and two neighbors
/// save 2. With spans for both kinds of stage, the first range takes those that do not split.
TEST(Balance, SpansAddUpToRanges) {
  auto costOf = [](int64_t begin, int64_t end) {
    double cost = 50 + (begin < 4 && end > 1 ? 7 : 0) - 2 * (end - begin - 1);
    for (int64_t layer = begin; layer < end; ++layer)
      cost += 10 * layer + 1;
    return cost;
  };
  std::vector<Span> spans;
  for (bool splits : {false, true})
    for (int64_t size : {1, 2})
      for (int64_t first = 0; first + size <= 6; ++first) {
        double cost = costOf(first, first + size);
        spans.push_back({first, first + size - 1, {{cost, splits ? cost + 5 : 3, 0}}, splits});
      }
  RangeCosts costs(spans);
  for (int64_t range : {0, 1, 2})
    for (int64_t begin = 0; begin < 6; ++begin)
      for (int64_t end = begin + 1; end <= 6; ++end) {
        SlotCosts found = costs.of(range, begin, end);
        EXPECT_EQ(found.of(PassKind::Forward), costOf(begin, end));
        EXPECT_EQ(found.of(range == 0 ? PassKind::Weights : PassKind::Backward),
                  range == 0 ? 3 : costOf(begin, end) + 5);
      }
  EXPECT_TRUE(RangeCosts({}).isEmpty());
  EXPECT_FALSE(costs.isEmpty());
}

/// Random costs of layers, cut into chunks: if all cuts are compared, none makes the step shorter; where
/// there are too many and cuts are moved, only by little.
TEST(Balance, ChunksMakeTheStepShort) {
  struct Case {
    const char *schedule;
    int stages, microBatches;
    int64_t layers;
    int times;
    double most; ///< of the least time
  };
  std::mt19937 random(7);
  for (Case each : {Case{"interleaved", 2, 6, 8, 40, 1}, Case{"zb-v", 2, 6, 8, 40, 1},
                    Case{"interleaved", 3, 150, 14, 1, 1.02}})
    for (int i = 0; i < each.times; ++i) {
      std::vector<double> cost;
      for (int64_t layer = 0; layer < each.layers; ++layer)
        cost.push_back(10 + static_cast<double>(random() % 20));
      std::vector<Span> spans;
      for (bool splits : {false, true})
        for (int64_t size : {1, 2})
          for (int64_t first = 0; first + size <= each.layers; ++first) {
            double sum = cost[first] + (size > 1 ? cost[first + 1] : 0);
            SlotCosts ofSpan = splits ? SlotCosts{{sum, sum, sum}} : SlotCosts{{sum, 2 * sum, 0}};
            if (!splits || each.schedule == std::string("zb-v"))
              spans.push_back({first, first + size - 1, ofSpan, splits});
          }
      std::string problem;
      std::optional<Schedule> schedule =
          makeSchedule(each.schedule, each.stages, each.microBatches, 2, problem);
      ASSERT_TRUE(schedule) << problem;
      RangeCosts costs(spans);
      int count = schedule->positions();
      auto timeOf = [&](llvm::ArrayRef<int64_t> way) {
        std::vector<std::vector<SlotCosts>> ofStages(each.stages, std::vector<SlotCosts>(2));
        for (int position = 0; position < count; ++position) {
          auto [stage, chunk] = schedule->placeOf(position);
          ofStages[stage][chunk] = costs.of(position, way[position],
                                            position + 1 < count ? way[position + 1] : each.layers);
        }
        return reportByStage(*schedule, ofStages).time;
      };
      double mine = timeOf(balanceChunks(each.layers, *schedule, costs)), least = mine;
      for (const Cuts &way : allWays(each.layers, count))
        least = std::min(least, timeOf(way));
      EXPECT_LE(mine, each.most * least);
    }
}
