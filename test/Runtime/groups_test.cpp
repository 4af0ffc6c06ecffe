// The table of groups: what checkProgram refuses, and which ranks a row joins.

#include "common/mesh/mesh.h"
#include "common/run/check_program.h"
#include "reference.h"

#include <gtest/gtest.h>

using namespace partita_rt;

namespace {

struct Meshed {
  Axis mesh[3] = {{"dp", 2}, {"pp", 3}, {"tp", 2}};
  Group groups[4] = {{"tp", {2}}, {"dp", {0}}, {"dp,tp", {0, 2}}, {"pp", {1}, {0, 2}}};
  Stage stages[3];

  Program program() {
    Program p;
    p.mesh = mesh;
    p.groups = groups;
    p.stages = stages;
    p.stageAxis = 1;
    return p;
  }
  std::string error() {
    return errorOf([&] { checkProgram(program()); });
  }
};

TEST(Groups, AreOverTheMeshAndItsStages) {
  EXPECT_EQ(Meshed().error(), "");
  Meshed axis;
  axis.groups[1].axes = {3};
  EXPECT_EQ(axis.error(), "group dp is over no axis of the mesh, or of no stage of the program");
  Meshed stage;
  stage.groups[3].stages = {3, 4};
  EXPECT_EQ(stage.error(), "group pp is over no axis of the mesh, or of no stage of the program");
}

/// Every rank is in one group of a row, which all of its ranks see alike, or in none.
TEST(Groups, DivideTheRanks) {
  Meshed meshed;
  Program program = meshed.program();
  for (int row = 0; row < 4; ++row)
    for (int number = 0; number < rankCount(program); ++number) {
      Rank rank;
      setCoordinates(rank, program, number);
      Membership own = membershipsOf(rank)[size_t(row)];
      EXPECT_EQ(own.ranks.empty(), row == 3 && rank.stageNumber == 1);
      if (!own.ranks.empty()) {
        EXPECT_EQ(own.ranks[size_t(own.position)], number);
      }
      for (int other : own.ranks) {
        setCoordinates(rank, program, other);
        EXPECT_EQ(membershipsOf(rank)[size_t(row)].ranks, own.ranks);
      }
    }
}

TEST(Groups, MayBeOverSeveralAxesOrOverSomeStages) {
  Meshed meshed;
  Program program = meshed.program();
  Rank rank;
  setCoordinates(rank, program, 7); // dp 1, pp 0, tp 1
  std::vector<Membership> memberships = membershipsOf(rank);
  EXPECT_EQ(memberships[0].ranks, (std::vector<int>{6, 7}));
  EXPECT_EQ(memberships[1].ranks, (std::vector<int>{1, 7}));
  EXPECT_EQ(memberships[2].ranks, (std::vector<int>{0, 1, 6, 7}));
  EXPECT_EQ(memberships[3].ranks, (std::vector<int>{7, 11}));
}

} // namespace
