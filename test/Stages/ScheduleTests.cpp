//===- ScheduleTests.cpp - schedules agree with the papers they come from -----------------------===//

#include "partita/Stages/Schedule.h"
#include "llvm/Support/JSON.h"
#include <fstream>
#include <gtest/gtest.h>
#include <numeric>
#include <random>
#include <sstream>

using namespace partita::stages;

static Schedule make(llvm::StringRef name, int stages, int microBatches, int chunks = 1) {
  std::string problem;
  std::optional<Schedule> schedule = makeSchedule(name, stages, microBatches, chunks, problem);
  EXPECT_TRUE(schedule) << problem;
  EXPECT_EQ(findProblem(*schedule), "") << name.str() << " " << stages << " " << microBatches;
  return *schedule;
}

/// Returns a stage's slots as its loop has them.
static partita::train::OrderAttr orderOf(mlir::MLIRContext &context, const Schedule &schedule,
                                         int stage) {
  return partita::train::OrderAttr::get(&context, llvm::ArrayRef<Slot>(schedule.slots[stage]));
}

/// Returns the letters of a stage's passes: "FFBB".
static std::string letters(const std::vector<Slot> &slots) {
  std::string text;
  for (const Slot &slot : slots)
    text += slotText(slot).front();
  return text;
}

/// The forward and backward passes among DeepSpeed's commands for a stage, such as "rA0 L0 F0".
static std::string passesOf(const llvm::json::Array &ticks) {
  std::string text;
  for (const llvm::json::Value &tick : ticks) {
    std::istringstream commands(tick.getAsString()->str());
    for (std::string command; commands >> command;)
      if (command[0] == 'F' || command[0] == 'B')
        text += command[0];
  }
  return text;
}

/// DeepSpeed's instruction streams for four micro-batches on three stages: the same order, and no
/// more micro-batches in flight than it has buffers.
TEST(Schedule, OneForwardOneBackwardIsDeepSpeeds) {
  std::stringstream text;
  text << std::ifstream(PARTITA_STAGES_TEST_INPUTS "/pipe_m4_p3.json").rdbuf();
  llvm::Expected<llvm::json::Value> file = llvm::json::parse(text.str());
  ASSERT_TRUE(bool(file));
  const llvm::json::Array &stages = *file->getAsObject()->getArray("stages");
  Schedule schedule = make("1f1b", 3, 4);
  std::vector<int> inFlight = report(schedule, equalCosts()).inFlight;
  ASSERT_EQ(stages.size(), schedule.slots.size());
  for (auto [number, stage] : llvm::enumerate(stages)) {
    const std::vector<Slot> &slots = schedule.slots[number];
    EXPECT_EQ(letters(slots), passesOf(*stage.getAsObject()->getArray("ticks")));
    EXPECT_LE(inFlight[number], *stage.getAsObject()->getInteger("buffers"));
    for (PassKind kind : {PassKind::Forward, PassKind::Backward}) { // in the order of micro-batches
      int next = 0;
      for (const Slot &slot : slots)
        if (slot.kind == kind)
          EXPECT_EQ(slot.microBatch, next++);
    }
  }
}

/// The last stage joins passes that alternate, if the stage before is at most two micro-batches ahead.
TEST(Schedule, LastJoins) {
  EXPECT_TRUE(lastJoins(make("1f1b", 2, 4)));
  EXPECT_TRUE(lastJoins(make("1f1b", 3, 4)));
  EXPECT_TRUE(lastJoins(make("gpipe", 2, 1)));
  EXPECT_FALSE(lastJoins(make("gpipe", 2, 2))); // two ahead, but the last stage is as well
  EXPECT_FALSE(lastJoins(make("gpipe", 2, 4)));
  EXPECT_FALSE(lastJoins(make("zb-h1", 2, 4)));
  EXPECT_FALSE(lastJoins(make("interleaved", 2, 4, 2)));
  auto ofTwo = [](std::vector<std::vector<Slot>> slots, int microBatches) {
    Schedule schedule;
    schedule.stages = 2;
    schedule.microBatches = microBatches;
    schedule.slots = std::move(slots);
    return schedule;
  };
  std::vector<Slot> ahead = make("gpipe", 2, 2).slots[0], far = make("gpipe", 2, 3).slots[0];
  EXPECT_TRUE(lastJoins(ofTwo({ahead, make("1f1b", 2, 2).slots[1]}, 2)));
  EXPECT_FALSE(lastJoins(ofTwo({far, make("1f1b", 2, 3).slots[1]}, 3)));
  std::vector<Slot> crossed = make("1f1b", 2, 2).slots[1]; // F0 B1 F1 B0
  std::swap(crossed[1], crossed[3]);
  EXPECT_FALSE(lastJoins(ofTwo({ahead, crossed}, 2)));
}

/// Times are exact in binary. Each of the three passes takes the longest in some rows.
static const SlotCosts kCosts[] = {{10, 13, 7}, {1, 1, 1},   {2, 3, 1},   {2, 1.5, 2}, {4, 4, 2},
                                   {10, 7, 13}, {1, 1, 2},   {1, 4, 1},   {3, 4, 4},   {1, 7, 3},
                                   {7, 3, 25},  {9, 15, 30}, {20, 17, 9}, {2, 14, 14}};

/// The table of dialects/Pipe/README.md, for every schedule and all costs: the idle time of stages
/// that begin and end a step together, and of stages that begin the next step as soon as they have
/// ended this one. The papers' formulas are the last term of each maximum.
TEST(Schedule, BubblesAreThePapers) {
  for (int p : {2, 3, 4, 8, 16})
    for (int m : {p, 2 * p - 1, 2 * p, 4 * p, 64}) {
      auto expectIdle = [&](const Schedule &schedule, SlotCosts costs, double idle, double inside) {
        ScheduleReport found = report(schedule, costs);
        EXPECT_EQ(found.time - found.work.front(), (p - 1) * idle) << p << " " << m;
        EXPECT_EQ(found.idleInside, (p - 1) * inside) << p << " " << m;
      };
      Schedule gpipe = make("gpipe", p, m), oneByOne = make("1f1b", p, m), h1 = make("zb-h1", p, m),
               h2 = make("zb-h2", p, m), wave = make("zb-v", p, m, 2);
      for (SlotCosts costs : kCosts) {
        auto [f, b, w] = costs.each;
        double all = f + b + w;
        SlotCosts notSplit{f, b + w, 0};
        expectIdle(gpipe, notSplit, all, all);
        expectIdle(oneByOne, notSplit, all, all);
        expectIdle(h1, costs, std::max({f, b, f + b - w}), std::max(b, f + b - w));
        if (m < 2 * p - 1)
          continue;
        expectIdle(h2, costs, std::max({f, b - f, f + b - 2 * w}),
                   std::max({0., b - f, f + b - 2 * w}));
        if (b >= f && b >= w) // these are a chunk's, half a stage's
          expectIdle(wave, costs, std::max(b, 2 * (b - w)), std::max(b - f, 2 * (b - w)));
      }
      // The costs are a chunk's: each stage has v of them.
      for (int v = 1; v <= 4 && m % p == 0; ++v) {
        Schedule interleaved = make("interleaved", p, m, v);
        for (SlotCosts costs : kCosts) {
          double all = costs.each[0] + costs.each[1];
          expectIdle(interleaved, {costs.each[0], costs.each[1], 0}, all, all);
        }
      }
    }
}

/// A slower stage makes the others wait: two micro-batches, F 1, B 2, and twice that on stage 1.
TEST(Schedule, StagesHaveTheirOwnCosts) {
  Schedule schedule = make("1f1b", 2, 2);
  std::vector<std::vector<SlotCosts>> costs = {{{1, 2, 0}}, {{2, 4, 0}}};
  ScheduleReport result = reportByStage(schedule, costs);
  EXPECT_EQ(result.begins[0], (std::vector<double>{0, 1, 7, 13})); // F0 F1 B0 B1
  EXPECT_EQ(result.begins[1], (std::vector<double>{1, 3, 7, 9}));  // F0 B0 F1 B1
  EXPECT_EQ(result.time, 15);
  EXPECT_EQ(result.work, (std::vector<double>{6, 12}));
  EXPECT_EQ(result.bubbleShare(), 0.25);
  for (int p : {2, 4})
    for (int m : {4, 8}) // the paper's share at equal costs
      EXPECT_EQ(report(make("1f1b", p, m), {1, 2, 0}).bubbleShare(), (p - 1) / double(m));
}

/// The number of micro-batches whose values a stage keeps, in chunks.
TEST(Schedule, InFlightIsThePapers) {
  auto inFlight = [](const Schedule &schedule) { return report(schedule, equalCosts()).inFlight; };
  for (int p : {2, 3, 4, 8})
    for (int m : {2 * p, 4 * p}) {
      EXPECT_EQ(inFlight(make("gpipe", p, m)), std::vector<int>(p, m));
      std::vector<int> falling(p);
      std::iota(falling.rbegin(), falling.rend(), 1);
      EXPECT_EQ(inFlight(make("1f1b", p, m)), falling);
      EXPECT_EQ(inFlight(make("zb-h1", p, m)), std::vector<int>(p, p));
      EXPECT_EQ(inFlight(make("zb-h2", p, m)), std::vector<int>(p, 2 * p - 1));
      EXPECT_EQ(inFlight(make("zb-v", p, m, 2)), std::vector<int>(p, 2 * p));
      for (int v : {2, 3, 4})
        EXPECT_EQ(inFlight(make("interleaved", p, m, v)).front(),
                  std::min(2 * p - 1 + (v - 1) * p, m * v));
    }
}

/// Every schedule runs, and finishes even if each send waits for its receive.
TEST(Schedule, AllFinishWithBlockingSends) {
  for (int p = 1; p <= 16; ++p)
    for (int m = 1; m <= 64; ++m) {
      for (const char *name : {"gpipe", "1f1b", "zb-h1", "zb-h2"})
        make(name, p, m);
      make("zb-v", p, m, 2);
      for (int v = 1; v <= 4 && m % p == 0; ++v)
        make("interleaved", p, m, v);
    }
}

static Schedule any(std::mt19937 &random) {
  static const std::pair<const char *, int> names[] = {
      {"gpipe", 1}, {"1f1b", 1}, {"zb-h1", 1}, {"zb-h2", 1}, {"zb-v", 2}, {"interleaved", 3}};
  auto [name, chunks] = names[random() % std::size(names)];
  int p = 2 + static_cast<int>(random() % 5);
  return make(name, p, p * (1 + static_cast<int>(random() % 3)), chunks);
}

/// Slots that are dropped, duplicated, of another micro-batch, or before a slot that they need on
/// their own stage.
TEST(Schedule, WrongSlotsAreRefused) {
  std::mt19937 random(5);
  for (int i = 0; i < 200; ++i) {
    Schedule schedule = any(random);
    std::vector<Slot> &slots = schedule.slots[random() % schedule.slots.size()];
    size_t at = random() % slots.size();
    switch (i % 4) {
    case 0:
      slots.erase(slots.begin() + static_cast<ptrdiff_t>(at));
      break;
    case 1:
      slots.push_back(slots[at]);
      break;
    case 2:
      slots[at].microBatch = (slots[at].microBatch + 1) % schedule.microBatches;
      break;
    default: { // a backward pass in front of its forward pass
      Slot backward{{PassKind::Backward, slots[at].chunk}, slots[at].microBatch},
          forward = backward;
      forward.kind = PassKind::Forward;
      std::swap(*std::find(slots.begin(), slots.end(), backward),
                *std::find(slots.begin(), slots.end(), forward));
    }
    }
    EXPECT_NE(findProblem(schedule), "") << i;
  }
}

/// Messages that are dropped, duplicated, in a different order than at the other end, reversed,
/// late or not awaited.
TEST(Schedule, WrongMessagesAreRefused) {
  std::mt19937 random(7);
  int tried = 0;
  while (tried < 200) {
    Schedule schedule = any(random);
    std::vector<std::vector<Step>> all = stepsOf(schedule);
    ASSERT_EQ(findProblem(schedule, all), "");
    std::vector<Step> &steps = all[random() % all.size()];
    auto some = [&](auto isWanted) { // finds a wanted step, starting from a random one
      size_t first = random() % steps.size();
      for (size_t i = 0; i < steps.size(); ++i)
        if (size_t at = (first + i) % steps.size(); isWanted(steps[at]))
          return steps.begin() + static_cast<ptrdiff_t>(at);
      return steps.end();
    };
    auto isMessage = [](const Step &step) {
      return step.kind == Step::Send || step.kind == Step::Receive;
    };
    auto place = some(isMessage);
    switch (tried % 6) {
    case 0:
      steps.erase(place);
      break;
    case 1:
      steps.insert(place, Step(*place));
      break;
    case 2: { // two messages of one channel
      auto other = std::find_if(place + 1, steps.end(), [&](const Step &step) {
        return step.kind == place->kind && step.peer == place->peer &&
               step.slot.kind == place->slot.kind && step.slot.chunk == place->slot.chunk;
      });
      if (other == steps.end())
        continue;
      std::swap(*place, *other);
      break;
    }
    case 3:
      place->kind = place->kind == Step::Send ? Step::Receive : Step::Send;
      break;
    case 4: // a send before its slot, a receive after it
      std::swap(*place, place->kind == Step::Send ? *(place - 1) : *(place + 1));
      break;
    default: // not the first one, which awaits nothing
      steps.erase(some([&](const Step &step) {
        auto sends = [&](const Step &other) {
          return other.kind == Step::Send && other.peer == step.peer &&
                 other.slot.kind == step.slot.kind && other.slot.chunk == step.slot.chunk;
        };
        return step.kind == Step::Await && std::any_of(&*steps.cbegin(), &step, sends);
      }));
    }
    EXPECT_NE(findProblem(schedule, all), "") << tried;
    ++tried;
  }
}

/// The last stage would await its cotangent's send before it receives the next activation, which
/// the first stage sends only after receiving that cotangent.
TEST(Schedule, SendsThatWaitForOneAnotherAreRefused) {
  Schedule schedule = make("1f1b", 2, 2);
  std::vector<std::vector<Step>> all = stepsOf(schedule);
  auto blocks = [](std::vector<Step> &steps) { // awaits each send at once
    for (size_t i = 0; i < steps.size(); ++i)
      if (steps[i].kind == Step::Send) {
        Step await{Step::Await, steps[i].slot, steps[i].peer};
        steps.insert(steps.begin() + static_cast<ptrdiff_t>(++i), await);
      }
  };
  blocks(all[0]);
  EXPECT_EQ(findProblem(schedule, all), "");
  blocks(all[1]);
  EXPECT_EQ(
      findProblem(schedule, all),
      "stage 0, slot 2 (backward of micro-batch 0): waits until what this pass sent the last time is "
      "received, which never happens");
}

/// A stage that is further ahead than messages allow: each pass may have one in flight.
TEST(Schedule, StallsAreRefused) {
  Schedule schedule = make("1f1b", 2, 4);
  schedule.slots[0] = make("gpipe", 2, 4).slots[0];
  EXPECT_EQ(
      findProblem(schedule),
      "stage 0, slot 3 (forward of micro-batch 3): waits until what this pass sent the last time is "
      "received, which never happens");
  schedule = make("gpipe", 2, 2);
  std::swap(schedule.slots[0][2], schedule.slots[0][3]);
  EXPECT_EQ(
      findProblem(schedule),
      "stage 0, slot 2 (backward of micro-batch 1): receives micro-batch 0's message: they are taken "
      "in the order in which stage 1 sends them");
}

TEST(Schedule, ProblemsNameTheSlot) {
  Schedule schedule = make("1f1b", 2, 2);
  std::swap(schedule.slots[1][0], schedule.slots[1][1]);
  EXPECT_EQ(findProblem(schedule),
            "stage 1, slot 0 (backward of micro-batch 0): waits for the forward of "
            "micro-batch 0 on stage 1, which comes after it");
  schedule = make("1f1b", 2, 2);
  std::swap(schedule.slots[0][1], schedule.slots[0][2]); // F0 B0 F1 B1
  std::swap(schedule.slots[1][1], schedule.slots[1][2]); // F0 F1 B0 B1
  EXPECT_EQ(
      findProblem(schedule),
      "stage 0, slot 1 (backward of micro-batch 0): waits for the backward of micro-batch 0 on "
      "stage 1, which does not get there: it waits at its slot 1");
  schedule = make("zb-h1", 2, 2);
  schedule.slots[1].pop_back();
  EXPECT_EQ(findProblem(schedule), "stage 1 has no slot for the weights of micro-batch 1");
  schedule = make("gpipe", 2, 2);
  schedule.slots[0].push_back({{PassKind::Forward, 0}, 1});
  EXPECT_EQ(findProblem(schedule),
            "stage 0, slot 4 (forward of micro-batch 1): runs already in slot 1");
}

TEST(Schedule, NumbersThatDoNotFit) {
  std::string problem;
  EXPECT_FALSE(makeSchedule("interleaved", 4, 6, 2, problem));
  EXPECT_EQ(
      problem,
      "interleaved runs micro-batches in groups of as many as there are stages: 6 are not a multiple of 4");
  EXPECT_FALSE(makeSchedule("1f1b", 4, 8, 2, problem));
  EXPECT_EQ(problem, "1f1b has one chunk a stage, not 2; interleaved has any number");
  EXPECT_FALSE(makeSchedule("zb-v", 4, 8, 3, problem));
  EXPECT_EQ(problem, "zb-v has two chunks a stage, not 3; interleaved has any number");
  EXPECT_FALSE(makeSchedule("1b1f", 4, 8, 1, problem));
  EXPECT_EQ(problem,
            "there is no schedule '1b1f'; there are gpipe, 1f1b, interleaved, zb-h1, zb-h2, "
            "zb-v, and files with names that end in .json");
  EXPECT_FALSE(makeSchedule("gpipe", 0, 8, 1, problem));
  EXPECT_FALSE(makeSchedule("gpipe", 2, 0, 1, problem));
}

/// The schedule determines the number of chunks per stage, except for interleaved.
TEST(Schedule, LaysPositionsOut) {
  using partita::pipe::Positions;
  std::string problem;
  EXPECT_TRUE(layoutOf("1f1b", 4, 0, problem) == (Positions{4, 1, false}));
  EXPECT_TRUE(layoutOf("interleaved", 4, 0, problem) == (Positions{4, 2, false}));
  EXPECT_TRUE(layoutOf("interleaved", 4, 3, problem) == (Positions{4, 3, false}));
  EXPECT_TRUE(layoutOf("zb-v", 4, 0, problem) == (Positions{4, 2, true}));
  EXPECT_FALSE(layoutOf("zb-v", 4, 3, problem));
  EXPECT_EQ(problem, "zb-v has two chunks a stage, not 3; interleaved has any number");
  EXPECT_FALSE(layoutOf("gpipe", 4, 2, problem));
  EXPECT_EQ(problem, "gpipe has one chunk a stage, not 2; interleaved has any number");
  EXPECT_FALSE(layoutOf("1b1f", 4, 0, problem));
  for (bool isWave : {false, true})
    for (int64_t position = 0; position < 12; ++position) {
      Positions layout{4, 3, isWave};
      EXPECT_EQ(layout.at(layout.stageOf(position), layout.chunkOf(position)), position);
    }
  EXPECT_EQ((Positions{4, 3, true}.stageOf(4)), 3);
  EXPECT_EQ((Positions{4, 3, false}.stageOf(4)), 0);
}

TEST(ScheduleFile, IsReadAsItStands) {
  std::string problem;
  auto schedule = parseSchedule(
      R"({"slots": [["F0", "F1", "B0", "W0", "B1", "W1"], ["F0", "B0", "W0", "F1", "B1", "W1"]]})",
      problem);
  ASSERT_TRUE(schedule) << problem;
  EXPECT_EQ(schedule->stages, 2);
  EXPECT_EQ(schedule->microBatches, 2);
  EXPECT_TRUE(schedule->splitsBackward);
  EXPECT_EQ(findProblem(*schedule), "");
  schedule = parseSchedule(
      R"({"chunks": 2, "wave": true, "slots": [["F0", "F0.1", "B0.1", "B0"], ["F0", "F0.1", "B0.1", "B0"]]})",
      problem);
  ASSERT_TRUE(schedule) << problem;
  EXPECT_EQ(findProblem(*schedule), "");
  EXPECT_EQ(schedule->positionOf(1, 1), 2);
}

TEST(ScheduleFile, SaysWhatIsWrong) {
  const std::string deep(200000, '[');
  const std::pair<std::string, std::string> wrong[] = {
      {"[", "the schedule cannot be read: it is not valid JSON: "},
      {"{}", "the schedule has no \"slots\""},
      {R"({"slots": [], "x": 1})", "the schedule has no \"slots\""},
      {R"({"slots": [["F0"]], "x": 1})", "the schedule has \"x\", expected slots, chunks, wave"},
      {R"({"slots": [["F0", "X1"]]})",
       "stage 0, slot 1: \"X1\" is not a slot; a string with F, B or W and a micro-batch is one"},
      {R"({"slots": [["F0", 3]]})", "stage 0, slot 1: 3 is not a slot"},
      {R"({"slots": [["F-1"]]})", "stage 0, slot 0: \"F-1\" is not a slot"},
      {R"({"slots": [["F0.x"]]})", "stage 0, slot 0: \"F0.x\" is not a slot"},
      {R"({"slots": [["F0"]], "wave": true})", "\"wave\" needs \"chunks\" of 2 or more"},
      {deep, "the schedule cannot be read: its values are nested deeper than 64 levels"},
      {R"({"slots": [["F99999999"]]})", "stage 0, slot 0: \"F99999999\" is not a slot"},
      {R"({"slots": ["F0"]})", "stage 0 has no list of slots"},
      {R"({"slots": [["F0"]], "chunks": 0})", "\"chunks\" is not an integer from 1 to 1024"},
      {R"({"slots": [["F0"]], "wave": 1})", "\"wave\" is neither true nor false"},
  };
  for (const auto &[text, expected] : wrong) {
    std::string problem;
    EXPECT_FALSE(parseSchedule(text, problem)) << text.substr(0, 100);
    EXPECT_EQ(problem.substr(0, expected.size()), expected);
  }
  std::string problem;
  auto schedule = parseSchedule(R"({"slots": [["F0", "B0"], ["B0", "F0"]]})", problem);
  EXPECT_EQ(
      findProblem(*schedule),
      "stage 1, slot 0 (backward of micro-batch 0): waits for the forward of micro-batch 0 on stage 1, "
      "which comes after it");
}

/// An order loses no slot to its runs, and its length does not depend on the micro-batches.
TEST(ScheduleOrder, DoesNotGrowWithMicroBatches) {
  mlir::MLIRContext context;
  context.loadDialect<partita::train::TrainDialect>();
  for (auto [name, chunks] : {std::pair("gpipe", 1),
                              {"1f1b", 1},
                              {"zb-h1", 1},
                              {"zb-h2", 1},
                              {"zb-v", 2},
                              {"interleaved", 2},
                              {"interleaved", 3}})
    for (int p : {2, 3, 4, 8})
      for (int stage = 0; stage < p; ++stage) {
        std::vector<size_t> lengths;
        for (int m : {5 * p, 6 * p, 16 * p}) {
          Schedule schedule = make(name, p, m, chunks);
          partita::train::OrderAttr order = orderOf(context, schedule, stage);
          lengths.push_back(order.getNumbers().size());
          EXPECT_TRUE(order.getSlots() == schedule.slots[stage]) << name << " " << p << " " << m;
        }
        EXPECT_EQ(lengths[0], lengths[1]) << name << " " << p << " " << stage;
        EXPECT_EQ(lengths[0], lengths[2]) << name << " " << p << " " << stage;
      }
}
