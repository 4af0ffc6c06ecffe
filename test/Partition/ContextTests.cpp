//===- ContextTests.cpp - ranks of a ring have equal work -------------------------------------===//

#include "dialects/Par/Placement.h"
#include "lib/Partition/Flow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "partita/Interp/Tensor.h"
#include "partita/Phases/RegisterAll.h"
#include "llvm/Support/FormatVariadic.h"
#include <gtest/gtest.h>
#include <numeric>
#include <set>

using namespace mlir;
using namespace partita;

namespace {

constexpr char kModel[] = R"(
module attributes {{par.mesh = #par.mesh<dp = 2, cp = {0}>} {{
  train.parameter @table : tensor<16x8xf32>
  func.func @forward(%ids: tensor<2x{1}xi64> {{train.batch = 0}) -> tensor<2x{1}x2x4xf32> {{
    %table = train.read @table : tensor<16x8xf32>
    %x = tx.embedding %table, %ids : (tensor<16x8xf32>, tensor<2x{1}xi64>) -> tensor<2x{1}x8xf32>
    %q = tx.reshape %x : tensor<2x{1}x8xf32> -> tensor<2x{1}x2x4xf32>
    %out, %lse = tx.attention %q, %q, %q scale 0.5 {2}
      : (tensor<2x{1}x2x4xf32>, tensor<2x{1}x2x4xf32>, tensor<2x{1}x2x4xf32>) -> (tensor<2x{1}x2x4xf32>, tensor<2x2x{1}xf32>)
    return %out : tensor<2x{1}x2x4xf32>
  }
})";

/// The positions of the sequence that each rank of cp gets by what partition-seed-context decides for a model with one attention.
std::vector<std::vector<int64_t>> positionsOfRanks(int64_t ranks, int64_t length,
                                                   StringRef options) {
  static DialectRegistry registry = [] {
    DialectRegistry all;
    registerEverything(all);
    return all;
  }();
  MLIRContext context(registry);
  auto module =
      parseSourceString<ModuleOp>(llvm::formatv(kModel, ranks, length, options).str(), &context);
  PassManager passes(&context);
  EXPECT_TRUE(module && succeeded(parsePassPipeline("partition-seed-context{how=ring}", passes)) &&
              succeeded(passes.run(*module)));
  auto function = *module->getOps<func::FuncOp>().begin();
  auto split = function.getArgAttrOfType<par::PlacementAttr>(0, kArgumentSplit);
  EXPECT_TRUE(split);
  std::vector<std::vector<int64_t>> positions;
  if (!split)
    return positions;
  par::MeshAttr mesh = par::MeshAttr::of(*module);
  auto fail = [](const Twine &text) { ADD_FAILURE() << text.str(); };
  auto type = par::Layout::of(split).localType(IntegerType::get(&context, 64), mesh, fail);
  interp::Tensor full({2, length}, /*isReal=*/false);
  for (int64_t i = 0; i < full.size(); ++i)
    full.ints[i] = i % length;
  auto shards = interp::cut(full, *type, mesh, /*seed=*/0, fail);
  for (int64_t rank = 0; rank < ranks; ++rank) { // dp is outermost
    const std::vector<int64_t> &rows = (*shards)[rank]->ints;
    positions.emplace_back(rows.begin(), rows.begin() + rows.size() / 2);
  }
  return positions;
}

/// In each step of a ring, the pairs of a query and a key that each rank computes under a causal mask.
std::vector<std::vector<int64_t>> work(const std::vector<std::vector<int64_t>> &positions) {
  size_t ranks = positions.size();
  std::vector<std::vector<int64_t>> steps(ranks, std::vector<int64_t>(ranks));
  for (size_t step = 0; step < ranks; ++step)
    for (size_t rank = 0; rank < ranks; ++rank)
      for (int64_t query : positions[rank])
        for (int64_t key : positions[(rank + ranks - step) % ranks])
          steps[step][rank] += key <= query;
  return steps;
}

bool areEqual(const std::vector<int64_t> &values) {
  return std::set<int64_t>(values.begin(), values.end()).size() == 1;
}

/// Of causal attention, all ranks compute the same number of scores, in every step of the ring.
TEST(Context, CausalWorkIsEqualInEveryStep) {
  for (int64_t ranks : {2, 4, 8})
    for (int64_t length : {16, 64}) {
      auto positions = positionsOfRanks(ranks, length, "causal");
      std::vector<int64_t> all;
      for (const std::vector<int64_t> &each : positions)
        all.insert(all.end(), each.begin(), each.end());
      std::sort(all.begin(), all.end());
      std::vector<int64_t> expected(length);
      std::iota(expected.begin(), expected.end(), 0);
      EXPECT_EQ(all, expected);
      for (const std::vector<int64_t> &step : work(positions))
        EXPECT_TRUE(areEqual(step)) << ranks << " ranks, " << length << " positions";
    }
}

/// Where shards are dealt in order, the last rank computes most: what the other order is for.
TEST(Context, WhatCannotBeMirroredIsInOrder) {
  auto odd = positionsOfRanks(4, 12, "causal"); // eight chunks do not divide 12
  EXPECT_EQ(odd[3], (std::vector<int64_t>{9, 10, 11}));
  EXPECT_FALSE(areEqual(work(odd).front()) && areEqual(work(odd).back()));
  auto full = positionsOfRanks(2, 16, "");
  EXPECT_EQ(full[0], (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  auto window = positionsOfRanks(2, 16, "causal window 4");
  EXPECT_EQ(window[0], full[0]);
}

} // namespace
