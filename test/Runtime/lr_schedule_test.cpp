// Learning-rate schedules: DeepSpeed's numbers, our formulas, and messages about invalid texts.

#include "goldens.h"
#include "partita_rt/lr_schedule_text.h"

namespace partita_rt {
namespace {

LrSchedule read(const std::string &text) {
  LrSchedule schedule;
  EXPECT_EQ(parseLrSchedule(text, schedule), "") << text;
  return schedule;
}

TEST(LrSchedule, IsDeepSpeeds) {
  int checked = 0;
  for (const Json &golden : goldens("schedules")) {
    std::string text = golden.find("text")->string;
    LrSchedule schedule = read(text);
    for (const Json &row : golden.find("rates")->items) {
      ScheduledRates rates = scheduledRates(schedule, int64_t(numberOf(row.items[0])), 1e-3);
      double expected = numberOf(row.items[1]);
      EXPECT_NEAR(rates.rate, expected, 1e-12 * expected) << text << " " << row.items[0].string;
      EXPECT_NEAR(rates.setsBetas ? rates.beta1 : 0.9, numberOf(row.items[2]), 1e-12) << text;
      EXPECT_NEAR(rates.setsBetas ? rates.beta2 : 0.999, numberOf(row.items[3]), 1e-12) << text;
      ++checked;
    }
  }
  EXPECT_EQ(checked, 79);
}

/// Of other values than the goldens': the formulas' own points.
TEST(LrSchedule, HasItsCornersWhereTheyBelong) {
  auto rate = [](const std::string &text, int64_t done, double base = 1) {
    return scheduledRates(read(text), done, base).rate;
  };
  // A warm-up of one step counts as two, and the base rate is the default maximum.
  EXPECT_DOUBLE_EQ(rate("WarmupLR,warmup_num_steps=1,warmup_type=linear", 2, 3), 1.5);
  EXPECT_DOUBLE_EQ(rate("WarmupLR,warmup_num_steps=1", 2, 3), 3);
  EXPECT_DOUBLE_EQ(rate("WarmupLR,warmup_max_lr=0.5,warmup_num_steps=2", 9, 3), 0.5);
  // If the warm-up takes all steps, there are none left for the decay.
  EXPECT_EQ(rate("WarmupDecayLR,total_num_steps=5,warmup_num_steps=10", 11), 0);
  EXPECT_DOUBLE_EQ(
      rate("WarmupCosineLR,total_num_steps=5,warmup_num_steps=10,cos_min_ratio=0.25", 11, 2), 0.5);
  // The ratio of a cosine's warm-up applies from the second update on.
  std::string cosine = "WarmupCosineLR,total_num_steps=9,warmup_min_ratio=0.5,warmup_num_steps=4";
  EXPECT_EQ(rate(cosine, 0), 0);
  EXPECT_DOUBLE_EQ(rate(cosine, 1), 0.5);
  // Stairs: two up, five down, each held; a step that is exactly one counts.
  std::string stairs = "OneCycle,cycle_min_lr=1,cycle_max_lr=2,cycle_first_step_size=4,"
                       "cycle_second_step_size=10,cycle_first_stair_count=2,"
                       "cycle_second_stair_count=5";
  std::vector<double> expected = {1, 1, 1.5, 1.5, 2, 1.8, 1.8, 1.6, 1.6, 1.4, 1.4, 1.2, 1.2, 1, 1};
  for (size_t done = 0; done < expected.size(); ++done)
    EXPECT_NEAR(rate(stairs, int64_t(done)), expected[done], 1e-12) << done;
  EXPECT_EQ(rate(stairs, 1000), 1) << "no decay without a decay_step_size";
  EXPECT_FALSE(scheduledRates(read(stairs + ",cycle_momentum=false"), 3, 1).setsBetas);
  std::string test = "LRRangeTest,lr_range_test_min_lr=2,lr_range_test_step_size=3,"
                     "lr_range_test_step_rate=0.5,lr_range_test_staircase=true";
  EXPECT_DOUBLE_EQ(rate(test, 2), 2);
  EXPECT_DOUBLE_EQ(rate(test, 3), 3);
}

TEST(LrSchedule, OursWarmUpAndDecay) {
  LrSchedule schedule = read("cosine,warmup_steps=10,schedule_steps=20,min_lr_ratio=0.2");
  auto rate = [&](int64_t done) { return scheduledRates(schedule, done, 2).rate; };
  EXPECT_DOUBLE_EQ(rate(0), 0.2);
  EXPECT_DOUBLE_EQ(rate(9), 2);
  EXPECT_DOUBLE_EQ(rate(14), 2 * (0.2 + 0.8 * 0.5));
  EXPECT_DOUBLE_EQ(rate(19), 0.4);
  EXPECT_DOUBLE_EQ(rate(500), 0.4);
  schedule = read("constant,warmup_steps=4");
  EXPECT_DOUBLE_EQ(rate(1), 1);
  EXPECT_DOUBLE_EQ(rate(4), 2);
}

TEST(LrSchedule, SaysWhatIsWrong) {
  LrSchedule untouched;
  auto problem = [&](const std::string &text) {
    std::string said = parseLrSchedule(text, untouched);
    EXPECT_EQ(untouched.kind, LrScheduleKind::Constant) << text;
    return said;
  };
  EXPECT_EQ(problem("WarmupRL"),
            "there is no schedule 'WarmupRL'; did you mean 'WarmupLR'? (constant, cosine, "
            "WarmupLR, WarmupDecayLR, WarmupCosineLR, OneCycle, LRRangeTest)");
  EXPECT_EQ(problem("WarmupLR,warmup_numsteps=3"),
            "WarmupLR has no key 'warmup_numsteps'; did you mean 'warmup_num_steps'?");
  EXPECT_EQ(problem("WarmupLR,total_num_steps=3"),
            "WarmupLR has no key 'total_num_steps'; did you mean 'warmup_num_steps'?");
  EXPECT_EQ(problem("WarmupDecayLR,warmup_num_steps=3"),
            "WarmupDecayLR needs total_num_steps: WarmupDecayLR,total_num_steps=...");
  EXPECT_EQ(problem("WarmupLR,warmup_num_steps=0"),
            "warmup_num_steps: '0' is not an integer of at least 1");
  EXPECT_EQ(problem("WarmupLR,warmup_num_steps=1.5"),
            "warmup_num_steps: '1.5' is not an integer of at least 1");
  EXPECT_EQ(problem("WarmupLR,warmup_max_lr=-1"),
            "warmup_max_lr: '-1' is not a number from 0 to below 1e+09");
  EXPECT_EQ(problem("WarmupLR,warmup_max_lr=nan"),
            "warmup_max_lr: 'nan' is not a number from 0 to below 1e+09");
  EXPECT_EQ(problem("WarmupLR,warmup_type=exp"), "warmup_type: 'exp' is neither log nor linear");
  EXPECT_EQ(problem("OneCycle,cycle_min_lr=1,cycle_max_lr=2,cycle_max_mom=1"),
            "cycle_max_mom: '1' is not a number from 0 to below 1");
  EXPECT_EQ(problem("OneCycle,cycle_min_lr=1"),
            "OneCycle needs cycle_max_lr: OneCycle,cycle_max_lr=...");
  EXPECT_EQ(problem("WarmupLR,warmup_num_steps=3,warmup_num_steps=4"),
            "warmup_num_steps is given twice");
  for (const char *text : {"WarmupLR,", "WarmupLR,x", "WarmupLR,=3", "WarmupLR,,warmup_min_lr=1"})
    EXPECT_NE(problem(text).find("is not of the form key=value"), std::string::npos) << text;
  EXPECT_EQ(problem("WarmupLR,warmup_num_steps="),
            "warmup_num_steps: '' is not an integer of at least 1");
  EXPECT_NE(problem(""), "");
}

} // namespace
} // namespace partita_rt
