//===- EndingSignalsTests.cpp - waits that a signal ends -------------------------------------===//

#include "tools/partita/Run/EndingSignals.h"
#include <csignal>
#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>

using namespace partita::tool;

namespace {

TEST(EndingSignals, AWaitIsOverWhenItSaysSo) {
  int asked = 0;
  EXPECT_TRUE(waitUntil(60, [&] { return ++asked == 3; }));
  EXPECT_EQ(asked, 3);
  EXPECT_FALSE(waitUntil(0, [] { return false; }));
  EXPECT_TRUE(waitUntil(0, [] { return true; }));
}

/// In a process of its own: a signal that has arrived is never forgotten.
TEST(EndingSignals, ASignalEndsAWait) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto wait = [](bool isBefore) {
    noteEndingSignals();
    std::thread sender([=] {
      usleep(isBefore ? 0 : 100'000);
      kill(getpid(), SIGTERM);
    });
    if (isBefore)
      sender.join();
    bool isOver = waitUntil(600, [] { return false; });
    pauseFor(600);
    if (!isBefore)
      sender.join();
    _exit(!isOver && interruptingSignal() == SIGTERM ? 42 : 1);
  };
  EXPECT_EXIT(wait(true), testing::ExitedWithCode(42), "");
  EXPECT_EXIT(wait(false), testing::ExitedWithCode(42), "");
}

TEST(EndingSignals, ASignalThatALauncherSendsTwiceIsOne) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto count = [] {
    noteEndingSignals();
    raise(SIGTERM);
    raise(SIGTERM);
    raise(SIGHUP); // as systemd sends it after SIGTERM
    bool isOne = arrivedSignals() == 1 && interruptingSignal() == SIGTERM;
    usleep(1'100'000);
    raise(SIGUSR1);
    _exit(isOne && arrivedSignals() == 2 && interruptingSignal() == SIGUSR1 ? 42 : 1);
  };
  EXPECT_EXIT(count(), testing::ExitedWithCode(42), "");
}

} // namespace
