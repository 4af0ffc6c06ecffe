// The table of channels: errors of checkProgram, and the ranks that a row connects.

#include "common/mesh/mesh.h"
#include "common/run/check_program.h"
#include "reference.h"

#include <gtest/gtest.h>

using namespace partita_rt;

namespace {

struct Pipeline {
  Axis mesh[3] = {{"dp", 2}, {"pp", 3}, {"tp", 2}};
  Channel channels[2] = {{"onward", 0, 1}, {"home", 2, 0}};
  MessageEntry sent[1] = {{0, 4, 64, "h.0"}}, received[1] = {{0, 4, 64, "h.0"}};
  Stage stages[3];

  Program program() {
    stages[0].messages = sent;
    stages[1].messages = received;
    Program p;
    p.mesh = mesh;
    p.stages = stages;
    p.stageAxis = 1;
    p.channels = channels;
    return p;
  }
  std::string error() {
    return errorOf([&] { checkProgram(program()); });
  }
};

TEST(Channels, AreDirectedPairsOfStages) {
  EXPECT_EQ(Pipeline().error(), "");
  Pipeline none;
  none.channels[1].to = 3;
  EXPECT_EQ(none.error(), "channel home joins stage 3, the program has 3");
  Pipeline negative;
  negative.channels[1].from = -1;
  EXPECT_EQ(negative.error(), "channel home joins stage -1, the program has 3");
  Pipeline itself;
  itself.channels[1].to = 2;
  EXPECT_EQ(itself.error(), "channel home leads from stage 2 to itself");
  Pipeline twice;
  twice.channels[1].name = "onward";
  EXPECT_EQ(twice.error(), "two channels of the program are named onward");
}

TEST(Channels, BothEndsAnnounceTheSame) {
  Pipeline fewer;
  fewer.received[0].messages = 3;
  EXPECT_EQ(fewer.error(), "stage 0 announces that it sends 4 messages of 64 bytes over channel "
                           "onward, stage 1 that it receives 3 of 64 bytes");
  Pipeline unknown;
  unknown.sent[0].channel = unknown.received[0].channel = 2;
  EXPECT_EQ(unknown.error(), "stage 0 announces messages over channel 2 of 2");
  Pipeline elsewhere;
  elsewhere.channels[0] = {"onward", 2, 1};
  EXPECT_EQ(elsewhere.error(),
            "stage 2 announces that it sends 0 messages of 0 bytes over channel onward, stage 1 "
            "that it receives 4 of 64 bytes");
}

TEST(Channels, JoinRanksThatDifferInTheirStageAlone) {
  Pipeline pipeline;
  Program program = pipeline.program();
  Rank rank;
  setCoordinates(rank, program, 7); // dp 1, pp 0, tp 1
  std::vector<ChannelEndpoint> endpoints = channelsOf(rank);
  ASSERT_EQ(endpoints.size(), 2u);
  EXPECT_TRUE(endpoints[0].sends);
  EXPECT_EQ(endpoints[0].peer, 9);
  EXPECT_FALSE(endpoints[1].sends);
  EXPECT_EQ(endpoints[1].peer, 11);
  EXPECT_EQ(endpoints[1].peerText, "rank 11 of stage 2");
  setCoordinates(rank, program, 9);
  endpoints = channelsOf(rank);
  ASSERT_EQ(endpoints.size(), 1u);
  EXPECT_FALSE(endpoints[0].sends);
  EXPECT_EQ(endpoints[0].peer, 7);
}

} // namespace
