//===- PlanTests.cpp - the plan's options agree with the code ------------------------------------===//

#include "dialects/Train/Train.h"
#include "partita/Phases/Plan.h"
#include "partita/Stages/Schedule.h"
#include <gtest/gtest.h>

using namespace partita;

/// Returns the words of an option's value, sorted.
static llvm::SmallVector<llvm::StringRef> wordsOf(llvm::StringRef option) {
  llvm::SmallVector<llvm::StringRef> words;
  findPlanOption(option)->value.split(words, '|');
  llvm::sort(words);
  return words;
}

TEST(Plan, NamesAllSchedules) {
  std::string problem;
  EXPECT_FALSE(stages::layoutOf("none such", 2, 1, problem));
  llvm::SmallVector<llvm::StringRef> known;
  llvm::StringRef list = llvm::StringRef(problem).split("there are ").second;
  EXPECT_TRUE(list.consume_back(", and files with names that end in .json"));
  list.split(known, ", ");
  known.push_back("FILE.json");
  llvm::sort(known);
  EXPECT_EQ(wordsOf("schedule"), known);
}

/// "momentum" is the name of sgd with --momentum.
TEST(Plan, NamesAllOptimizers) {
  std::vector<std::string> known, words;
  for (const train::OptimizerRow &each : train::optimizers())
    if (each.name != "momentum")
      known.push_back(each.name.str());
  for (llvm::StringRef word : wordsOf("optimizer")) // of an op's name in the IR
    words.push_back(word.str()), llvm::replace(words.back(), '-', '_');
  EXPECT_EQ(words, known);
}

/// Every option keeps a value that it accepts in the unpartitioned program.
TEST(Plan, UnpartitionedValuesAreValid) {
  for (const PlanOption &option : planOptions())
    if (option.unpartitioned)
      EXPECT_EQ(checkPlanValue(option, option.unpartitioned), "") << option.name.str();
  Plan plan;
  plan.set("mesh", "dp=2,tp=2");
  plan.set("zero-stage", "3");
  plan.set("accumulate", "4");
  plan.setUnpartitioned();
  EXPECT_EQ(plan.get("mesh"), "");
  EXPECT_EQ(plan.get("zero-stage"), "0");
  EXPECT_EQ(plan.get("accumulate"), "4");
}
