// Which value an option has in a command line.

#include "partita_rt/option_words.h"

#include <gtest/gtest.h>
#include <vector>

using partita_rt::optionValue;

namespace {

std::optional<std::string> valueIn(const std::vector<std::string> &words) {
  return optionValue(words, "--timeout");
}

TEST(OptionWords, TheLastValueCounts) {
  EXPECT_EQ(valueIn({"--lr", "1", "--timeout", "3"}), "3");
  EXPECT_EQ(valueIn({"--timeout=4", "x"}), "4");
  EXPECT_EQ(valueIn({"--timeout", "3", "--timeout=4"}), "4");
  EXPECT_EQ(valueIn({"--timeout="}), "");
}

TEST(OptionWords, OtherWordsAreNone) {
  EXPECT_EQ(valueIn({}), std::nullopt);
  EXPECT_EQ(valueIn({"--timeout"}), std::nullopt);
  EXPECT_EQ(valueIn({"--timeouts=4", "timeout", "--timeouts", "5"}), std::nullopt);
}

} // namespace
