// The joint backward pass with mma.sync: against sums in double, within its roundings; the bits must not depend on
// schedule or alignment.

#include "attention_calls.h"
#include "cuda/cuda.h"

namespace partita_rt::cuda {
namespace {

template <typename T> class JointAttentionOnTensorCores : public testing::Test {
protected:
  void TearDown() override { simt::setBlocksAtOnce(1); }
};
TYPED_TEST_SUITE(JointAttentionOnTensorCores, NarrowTypes);

// First at addresses that are not aligned to packs, except those of dq.
TYPED_TEST(JointAttentionOnTensorCores, Backward) {
  for (const Case &c : {
           Case{"one key", shapeOf(1, 1, 1, 1, 64, true)},
           {"heads of 64, odd sequence", shapeOf(2, 3, 165, 165, 64, true)},
           {"heads of 128, grouped queries", shapeOf(1, 4, 140, 140, 128, true, 2)},
           {"more keys than queries", shapeOf(1, 2, 33, 150, 64, true, 2)},
           {"queries that see no key", shapeOf(1, 1, 200, 50, 64, true)},
           {"keys that no query sees", shapeOf(1, 3, 30, 330, 64, false, 1, 0, 70)},
           {"a window", shapeOf(1, 1, 300, 300, 128, true, 1, 0, 34)},
           {"documents", withDocuments(shapeOf(2, 2, 300, 300, 64, true, 2), 70)},
           {"documents that see later keys",
            withDocuments(shapeOf(1, 1, 150, 150, 128, false), 40)},
           {"dropout", withDropout(shapeOf(1, 3, 140, 140, 64, true), 0.1)},
           {"dropout and documents, wide heads",
            withDropout(withDocuments(shapeOf(1, 1, 100, 100, 128, false), 40), 0.5)},
       })
    checkBackward<TypeParam>(c, By::MmaTurns, 1);
}

/// On the simulated GPU, the five blocks of other tests run one after another: here they wait for each other.
TYPED_TEST(JointAttentionOnTensorCores, TurnsOfBlocksThatRunAtOnce) {
  if (std::is_same_v<TypeParam, Half>)
    return;
  simt::setBlocksAtOnce(5);
  for (const Case &c : {Case{"many tiles", shapeOf(1, 3, 520, 520, 64, true)},
                        {"slots that other heads have had", shapeOf(1, 9, 200, 200, 64, true)},
                        {"keys that no query sees", shapeOf(1, 3, 300, 900, 64, true, 1, 0, 300)},
                        {"grouped queries, not causal", shapeOf(1, 6, 100, 300, 128, false, 2)}})
    checkBackward<TypeParam>(c, By::MmaTurns, 0);
}

TYPED_TEST(JointAttentionOnTensorCores, TilesThatAreNotSeenAreNotRead) {
  for (int64_t dim : {64, 128}) {
    checkOthersAreNotRead<TypeParam>(By::MmaTurns, dim, true);
    checkOutsideOfWindowsIsNotRead<TypeParam>(By::MmaTurns, dim);
  }
}

/// Does attentionBackwardMma go jointly? Then its blocks have drawn a ticket for each tile of keys, and one more each.
template <typename T> bool isJoint(const AttentionShape &shape, int64_t offset = 0) {
  Call<T> call(shape, offset);
  call.forward(By::Mma);
  EXPECT_TRUE(call.backward(By::MmaAny));
  EXPECT_TRUE(call.workspace.marginsKept());
  AttentionWork work = attentionWork(shape, kDTypeOf<T>);
  int64_t slots = attentionMmaSlots(work);
  if (slots == 0)
    return false;
  int64_t tiles = attentionKeyHeads(work) * ceilDiv(shape.keySequence, 128);
  uint32_t tickets;
  std::memcpy(&tickets,
              call.workspace.in() + attentionHeadSumsAt(work.queries) +
                  slots * attentionHeadSums(work),
              sizeof(tickets));
  return tickets > tiles && tickets <= tiles + 2 * multiprocessors();
}

TYPED_TEST(JointAttentionOnTensorCores, WhereTilesFillTheGpu) {
  using T = TypeParam;
  if (std::is_same_v<T, Half>)
    return;
  AttentionShape many = shapeOf(2, kMultiprocessors / 4, 2, 1000, 64, true);
  EXPECT_TRUE(isJoint<T>(many));
  auto slotsOf = [](const AttentionShape &shape) {
    return attentionMmaSlots(attentionWork(shape, kDTypeOf<T>));
  };
  EXPECT_EQ(slotsOf(many), kMultiprocessors / 2);
  EXPECT_EQ(slotsOf(shapeOf(2, kMultiprocessors / 4, 2, 896, 64, true)), 0);
  EXPECT_EQ(slotsOf(shapeOf(8, 12, 1024, 1024, 64, true)), 96);
  EXPECT_EQ(slotsOf(shapeOf(4, 12, 1024, 1024, 64, true)), 0);
  EXPECT_EQ(slotsOf(shapeOf(4, 12, 1024, 1024, 128, true)), 48); // tiles of 64 keys
  EXPECT_EQ(slotsOf(shapeOf(8, 32, 4096, 4096, 64, true, 4)),
            0); // LLaMA 1B: 10 heads at once, of 32 tiles
  EXPECT_EQ(slotsOf(shapeOf(2, 32, 8192, 8192, 128, true, 4)), 5); // 8B
  EXPECT_FALSE(isJoint<T>(shapeOf(1, 1, 70, 140, 64, false)));
  EXPECT_FALSE(isJoint<T>(many, 4)); // not in packs
  setenv("PARTITA_RT_ATTENTION", "tiles", 1);
  EXPECT_FALSE(isJoint<T>(many));
  unsetenv("PARTITA_RT_ATTENTION");
}

/// Without sums of rows, there are fewer barriers.
TYPED_TEST(JointAttentionOnTensorCores, WithoutSumsOfRows) {
  using T = TypeParam;
  AttentionShape shape = shapeOf(1, 3, 150, 150, 64, true);
  Call<T> wanted(shape);
  ASSERT_TRUE(wanted.forward(By::Mma) && wanted.backward(By::MmaTurns));
  inEveryOrder([&] {
    Call<T> call(shape);
    call.hasSums = false;
    ASSERT_TRUE(call.forward(By::Mma) && call.backward(By::MmaTurns));
    EXPECT_BITS(call.dq, wanted.dq.floats());
    EXPECT_BITS(call.dk, wanted.dk.floats());
    EXPECT_BITS(call.dv, wanted.dv.floats());
  });
}

} // namespace
} // namespace partita_rt::cuda
