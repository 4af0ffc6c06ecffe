//===- PatienceTests.cpp - how long `partita run` waits ---------------------------------------===//

#include "tools/partita/Run/Patience.h"
#include <cstdlib>
#include <gtest/gtest.h>

using namespace partita::tool;

namespace {

std::string problemOf(const char *text) {
  setenv("PARTITA_PATIENCE", text, 1);
  std::string problem = problemOfPatience();
  unsetenv("PARTITA_PATIENCE");
  return problem;
}

TEST(Patience, IsWhatTheUserSays) {
  EXPECT_EQ(textOf(Patience::Hosts), "10 minutes");
  EXPECT_EQ(textOf(Patience::Discovery), "60 s");
  setenv("PARTITA_PATIENCE", "hosts:90,orphans:1", 1);
  EXPECT_EQ(textOf(Patience::Hosts), "90 s");
  EXPECT_EQ(secondsOf(Patience::Orphans), 1);
  EXPECT_EQ(secondsOf(Patience::Mark), 5);
  unsetenv("PARTITA_PATIENCE");
}

TEST(Patience, RefusesOtherWords) {
  EXPECT_EQ(problemOf(""), "");
  EXPECT_EQ(problemOf("mark:1,discovery:1000000"), "");
  EXPECT_EQ(problemOf("hosts:1,mark:1,hosts:2"), "PARTITA_PATIENCE: 'hosts' is given twice");
  for (const char *word : {"host:3", "hosts", "hosts:0", "hosts:1s", "hosts:1000001", "hosts:-1"})
    EXPECT_EQ(problemOf(word),
              std::string("PARTITA_PATIENCE: '") + word +
                  "' is not NAME:SECONDS, where NAME is one of discovery, folder, "
                  "hosts, launcher, lock, mark, orphans and SECONDS from 1 to 1000000");
}

} // namespace
