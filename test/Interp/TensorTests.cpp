//===- TensorTests.cpp - full values and their shards -----------------------------------------===//

#include "dialects/Par/Placement.h"
#include "partita/Interp/Random.h"
#include "partita/Interp/Tensor.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace partita;
using namespace partita::interp;

namespace {

class Shards : public testing::Test {
protected:
  Shards() {
    context.loadDialect<par::ParDialect>();
    dp = StringAttr::get(&context, "dp");
    tp = StringAttr::get(&context, "tp");
    mesh = par::MeshAttr::get(&context, ArrayRef<StringAttr>{dp, tp}, ArrayRef<int64_t>{2, 3});
    layout = par::Layout({12, 6});
  }

  RankedTensorType type() {
    auto local = layout.localType(Float64Type::get(&context), mesh, fail);
    return succeeded(local) ? *local : RankedTensorType();
  }

  Tensor numbers() {
    Tensor full({12, 6}, true);
    for (int64_t i = 0; i < full.size(); ++i)
      full.reals[i] = i;
    return full;
  }

  /// Cuts a value, checks the number of distinct shards, and assembles it again.
  void roundTrip(size_t distinct, double tolerance = 0) {
    Tensor full = numbers();
    auto shards = cut(full, type(), mesh, 7, fail);
    ASSERT_TRUE(succeeded(shards)) << message;
    ASSERT_EQ(shards->size(), 6u);
    EXPECT_EQ(std::set<std::shared_ptr<const Tensor>>(shards->begin(), shards->end()).size(),
              distinct);
    auto again = assemble(*shards, type(), mesh, fail);
    ASSERT_TRUE(succeeded(again)) << message;
    for (int64_t i = 0; i < full.size(); ++i)
      EXPECT_NEAR(again->reals[i], full.reals[i], tolerance);
  }

  MLIRContext context;
  StringAttr dp, tp;
  par::MeshAttr mesh;
  par::Layout layout;
  std::string message;
  std::function<void(const Twine &)> fail = [this](const Twine &text) { message = text.str(); };
};

TEST_F(Shards, InvariantIsShared) { roundTrip(1); }

TEST_F(Shards, Sharded) {
  layout.shard(dp, 0);
  layout.shard(tp, 1);
  roundTrip(6);
}

TEST_F(Shards, TwoAxesOnOneDimensionOutermostFirst) {
  layout.shard(tp, 0);
  layout.shard(dp, 0);
  roundTrip(6);
  auto shards = cut(numbers(), type(), mesh, 7, fail);
  // Rank 1 is dp 0, tp 1: the first half of the second third, rows 4 and 5.
  EXPECT_EQ((*shards)[1]->reals.front(), 4 * 6);
}

TEST_F(Shards, ShardedAndReplicated) {
  layout.shard(dp, 1);
  layout.set(tp, par::Kind::Replicated);
  roundTrip(2);
}

TEST_F(Shards, PartialSharesDifferAndAddUp) {
  layout.set(dp, par::Kind::Partial);
  layout.shard(tp, 0);
  roundTrip(6, 1e-12);
  auto shards = cut(numbers(), type(), mesh, 7, fail);
  double share = (*shards)[0]->reals[5] / 5, other = (*shards)[0]->reals[7] / 7;
  EXPECT_GT(std::abs(share - other), 1e-3) << "shares in proportion would hide a wrong linear rule";
}

TEST_F(Shards, RanksThatShouldAgree) {
  layout.shard(tp, 0);
  auto shards = cut(numbers(), type(), mesh, 7, fail);
  Tensor changed = *(*shards)[4];
  changed.reals[3] += 1e-15 * changed.reals[3];
  (*shards)[4] = std::make_shared<Tensor>(changed);
  EXPECT_TRUE(failed(checkAgreement(*shards, type(), mesh, fail)));
  EXPECT_NE(message.find("is invariant over dp, but element [0, 3]"), std::string::npos) << message;
  EXPECT_NE(message.find("on rank 1 and"), std::string::npos) << message;
  EXPECT_TRUE(failed(assemble(*shards, type(), mesh, fail)));
  layout.set(dp, par::Kind::Partial);
  EXPECT_TRUE(succeeded(checkAgreement(*shards, type(), mesh, fail)));
}

TEST_F(Shards, WrongShapes) {
  layout.shard(dp, 0);
  EXPECT_TRUE(failed(cut(Tensor({12, 7}, true), type(), mesh, 7, fail)));
  EXPECT_EQ(message, "a value of shape [12x7] is given for one of shape [12x6]");
  layout = par::Layout({12, 4}); // two of three ranks would hold all of it
  layout.shard(tp, 1);
  auto broken =
      RankedTensorType::get({12, 2}, Float64Type::get(&context), layout.encoding(&context));
  EXPECT_TRUE(failed(checkType(broken, mesh, fail)));
  EXPECT_EQ(message, "dimension 1 of size 4 does not divide over mesh axis tp of size 3");
}

TEST(Random, IsTheRuntimes) {
  // The first numbers of tools/python/partita_init.py's normal(1, "w", (3,), 1.0).
  uint64_t key = randomKey(1, "w");
  EXPECT_EQ(standardNormal(key, 0), -0.080780029296875);
  EXPECT_EQ(standardNormal(key, 1), -0.493682861328125);
  EXPECT_EQ(standardNormal(key, 2), 0.038116455078125);
}

} // namespace
