// The table of collectives, as its readers use it.

#include "common/mesh/request.h"
#include "partita_rt/comm.h"

#include <gtest/gtest.h>

using namespace partita_rt;

namespace {

TEST(Collectives, BytesAreThoseOfTheFullTensor) {
  EXPECT_EQ(wireBytes(CollectiveKind::AllReduce, 100, 4), 100);
  EXPECT_EQ(wireBytes(CollectiveKind::ReduceScatter, 100, 4), 400);
  EXPECT_EQ(wireBytes(CollectiveKind::AllGather, 100, 4), 400);
  EXPECT_EQ(wireBytes(CollectiveKind::Broadcast, 100, 4), 100);
  EXPECT_EQ(wireBytes(CollectiveKind::Barrier, 0, 4), 0);
  EXPECT_EQ(wireBytes(CollectiveKind::Shift, 100, 4), 100); // what a rank sends, and gets
  EXPECT_EQ(wireBytes(CollectiveKind::AllToAll, 100, 4), 400);
}

TEST(Collectives, AShiftAndAShiftBackCancelEachOther) {
  for (int64_t ranks : {1, 2, 3, 8})
    for (int64_t rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(shiftSource(shiftTarget(rank, ranks, false), ranks, false), rank);
      EXPECT_EQ(shiftSource(shiftSource(rank, ranks, false), ranks, true), rank);
    }
  EXPECT_EQ(shiftSource(0, 4, /*back=*/false), 3);
  EXPECT_EQ(shiftSource(0, 4, /*back=*/true), 1);
}

TEST(Collectives, NamesLeadBackToTheirRows) {
  for (const CollectiveRow &row : kCollectives) {
    EXPECT_EQ(collectiveNamed(row.name), &row);
    EXPECT_STREQ(nameOf(row.kind), row.name);
  }
}

TEST(Collectives, AnUnknownNameOrKindIsNoOther) {
  EXPECT_EQ(collectiveNamed("all_reduce_max"), nullptr);
  EXPECT_EQ(collectiveNamed(""), nullptr);
  EXPECT_STREQ(nameOf(CollectiveKind(kCollectiveKinds)), "unknown");
}

// A form is refused until the transports perform it. A collective that needs a refused one teaches
// them, extends isPerformed and moves its line to EXPECT_TRUE.
TEST(Collectives, FormsThatNoTransportPerformsAreRefused) {
  auto isPerformedAs = [](Extent from, Extent to, bool inPlace, bool reduces) {
    CollectiveRow row = rowOf(CollectiveKind::AllGather);
    row.from = from, row.to = to, row.inPlace = inPlace, row.reduces = reduces;
    return isPerformed(row);
  };
  EXPECT_TRUE(isPerformedAs(Extent::Full, Extent::Full, false, false));   // all-to-all
  EXPECT_TRUE(isPerformedAs(Extent::Shard, Extent::Shard, false, false)); // a shift
  EXPECT_FALSE(isPerformedAs(Extent::Shard, Extent::Shard, false, true));
  EXPECT_FALSE(isPerformedAs(Extent::Full, Extent::Full, false, true));
  EXPECT_FALSE(isPerformedAs(Extent::Shard, Extent::Full, false, true));
  EXPECT_FALSE(isPerformedAs(Extent::Full, Extent::Full, true, true));
}

template <typename T, typename = void> constexpr bool kHasDType = false;
template <typename T> constexpr bool kHasDType<T, std::void_t<decltype(DTypeOf<T>::value)>> = true;

TEST(Collectives, BuffersHaveTheTypeOfTheirElements) {
  static_assert(kDTypeOf<float> == DType::Float32 && kDTypeOf<bool> == DType::Bool);
  static_assert(kHasDType<int64_t> && !kHasDType<uint8_t> && !kHasDType<char>); // no default
  bool flags[2] = {};
  BFloat16 numbers[2] = {};
  EXPECT_EQ(Buffer(flags, 2).dtype, DType::Bool);
  EXPECT_EQ(Transfer(numbers, numbers, 2).dtype, DType::BFloat16);
}

} // namespace
