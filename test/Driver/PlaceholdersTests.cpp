//===- PlaceholdersTests.cpp - {ranks} and {hosts} in a launcher's words ----------------------===//

#include "tools/partita/Run/Placeholders.h"
#include <gtest/gtest.h>

using namespace partita::tool;

namespace {

std::string replaced(llvm::StringRef text) {
  return replacePlaceholders(text, [](llvm::StringRef name) { return "<" + name.str() + ">"; });
}

TEST(Placeholders, AreReplacedButForTheShells) {
  for (auto [text, expected] : {std::pair("", ""),
                                {"-np {ranks}", "-np <ranks>"},
                                {"{hosts}{ranks}", "<hosts><ranks>"},
                                {"${ranks} {ranks}", "${ranks} <ranks>"},
                                {"{", "{"},
                                {"{}", "{}"},
                                {"{ranks", "{ranks"},
                                {"{{ranks}}", "{ranks}"},
                                {"awk '{{print}}' {ranks}", "awk '{print}' <ranks>"},
                                {"{{ranks} {ranks}}", "{<ranks> <ranks>}"},
                                {"{{{ranks}}}", "{{ranks}}"},
                                {"${a:-${b}} {{.Name}} {{a b}}", "${a:-${b}} {{.Name}} {{a b}}"},
                                {"awk '{print $1}' {a b}", "awk '{print $1}' {a b}"},
                                {"$ {ranks}", "$ <ranks>"}})
    EXPECT_EQ(replaced(text), expected) << text;
}

TEST(Placeholders, AreFound) {
  EXPECT_TRUE(hasPlaceholder("-np {ranks}", "ranks"));
  EXPECT_FALSE(hasPlaceholder("-np ${ranks}", "ranks"));
  EXPECT_FALSE(hasPlaceholder("-np {hosts}", "ranks"));
  EXPECT_EQ(unknownPlaceholder("{ranks} {hosts} ${rank} {rank} {x}"), "rank");
  EXPECT_EQ(unknownPlaceholder("{ranks} {hosts} ${rank} {1} {{print}}"), "");
  EXPECT_FALSE(hasPlaceholder("-np {{ranks}}", "ranks"));
}

} // namespace
