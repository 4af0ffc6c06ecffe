//===- Generators.cpp - the published schedules -------------------------------------------------===//
//
// Each generator lists the slots of every stage, for p stages and m micro-batches. Waiting times
// and the number of micro-batches in flight are not given by formulas here: ScheduleReport derives
// them from the slots, and test/Stages/ScheduleTests.cpp compares them with the papers.
//
//===----------------------------------------------------------------------------------------------===//

#include "partita/Stages/Schedule.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <array>

using namespace partita::stages;

namespace {

/// Writes one stage's slots: the next micro-batch of each kind and chunk, while there is one.
class Writer {
public:
  Writer(const Schedule &schedule, std::vector<Slot> &slots)
      : slots(slots), m(schedule.microBatches) {
    done.fill(std::vector<int>(schedule.chunks, 0));
  }

  /// Nothing where there is no such micro-batch, or its pass before this one is still to come.
  void put(PassKind kind, int chunk = 0) {
    auto number = static_cast<size_t>(kind);
    int &next = done[number][chunk];
    int ready = number == 0 ? m : done[number - 1][chunk];
    if (next < ready)
      slots.push_back({{kind, chunk}, next++});
  }
  void forward(int chunk = 0) { put(PassKind::Forward, chunk); }
  void backward(int chunk = 0) { put(PassKind::Backward, chunk); }
  void weights(int chunk = 0) { put(PassKind::Weights, chunk); }
  bool has(PassKind kind, int chunk = 0) const {
    return done[static_cast<size_t>(kind)][chunk] < m;
  }

private:
  std::vector<Slot> &slots;
  int m;
  std::array<std::vector<int>, partita::train::kPassKindCount> done; ///< by kind and chunk
};

} // namespace

static void gpipe(Schedule &schedule) {
  for (std::vector<Slot> &slots : schedule.slots) {
    Writer stage(schedule, slots);
    while (stage.has(PassKind::Forward))
      stage.forward();
    while (stage.has(PassKind::Backward))
      stage.backward();
  }
}

/// Warms up with `ahead` forward passes per following stage, then alternates: 1F1B for 1; the
/// zero-bubble schedules, which split the backward pass, for 1 or 2. Stage s delays each weight
/// gradient by `ahead` * s micro-batches, so that input cotangents reach earlier stages sooner.
static void oneForwardOneBackward(Schedule &schedule, int ahead) {
  for (auto [number, slots] : llvm::enumerate(schedule.slots)) {
    int s = static_cast<int>(number);
    Writer stage(schedule, slots);
    for (int i = 0; i < ahead * (schedule.stages - s - 1); ++i)
      stage.forward();
    for (int i = 0; stage.has(PassKind::Backward); ++i) {
      stage.forward();
      stage.backward();
      if (schedule.splitsBackward && i >= ahead * s)
        stage.weights();
    }
    while (schedule.splitsBackward && stage.has(PassKind::Weights))
      stage.weights();
  }
}

/// 1F1B over chunks: micro-batches in groups of p, each group through one chunk after another. A
/// single group runs all of its forward passes first, as in Megatron-LM.
static void interleaved(Schedule &schedule) {
  int p = schedule.stages, v = schedule.chunks, m = schedule.microBatches, total = m * v;
  auto slotAt = [&](PassKind kind, int i) {
    int chunk = i % (p * v) / p;
    return Slot{{kind, kind == PassKind::Forward ? chunk : v - 1 - chunk}, i / (p * v) * p + i % p};
  };
  for (auto [s, slots] : llvm::enumerate(schedule.slots)) {
    int ahead = m == p ? total : std::min(total, (p - static_cast<int>(s) - 1) * 2 + (v - 1) * p);
    for (int i = 0; i < total + ahead; ++i) {
      if (i < total)
        slots.push_back(slotAt(PassKind::Forward, i));
      if (i >= ahead)
        slots.push_back(slotAt(PassKind::Backward, i - ahead));
    }
  }
}

/// Two chunks per stage, the second ones in reverse order, so that the first stage holds both the
/// first and the last layers. As many values are in flight as with 1F1B, equally many on all
/// stages.
static void zeroBubbleWave(Schedule &schedule) {
  int p = schedule.stages;
  for (auto [number, slots] : llvm::enumerate(schedule.slots)) {
    int s = static_cast<int>(number);
    Writer stage(schedule, slots);
    auto pass = [&](int chunk) {
      stage.forward(chunk);
      stage.backward(chunk);
      stage.weights(chunk);
    };
    for (int i = 0; i < 2 * (p - s) - 1; ++i)
      stage.forward(0);
    for (int i = 0; i < s; ++i) {
      stage.forward(1);
      stage.forward(0);
    }
    for (int i = 0; i < p - s; ++i)
      pass(1);
    while (stage.has(PassKind::Forward, 0) || stage.has(PassKind::Forward, 1)) {
      pass(0);
      pass(1);
    }
    for (int i = 0; i < s; ++i) {
      stage.backward(0);
      stage.backward(1);
    }
    for (int i = 0; i < p - s; ++i) {
      stage.backward(0);
      stage.weights(0);
    }
    for (int chunk : {1, 0})
      while (stage.has(PassKind::Weights, chunk)) {
        stage.backward(chunk);
        stage.weights(chunk);
      }
  }
}

namespace {
struct Generator {
  llvm::StringLiteral name;
  void (*fill)(Schedule &);
  bool splitsBackward = false;
  int chunks = 1;              ///< per stage, unless the user asks for another number
  bool takesAnyChunks = false; ///< whether the user may ask for another number
  bool isWave = false;         ///< how positions map to stages
  bool isInGroups = false;     ///< micro-batches come in groups of as many as there are stages
};
} // namespace

static constexpr Generator kGenerators[] = {
    {"gpipe", gpipe},
    {"1f1b", [](Schedule &schedule) { oneForwardOneBackward(schedule, 1); }},
    {"interleaved", interleaved, /*splitsBackward=*/false, /*chunks=*/2, /*takesAnyChunks=*/true,
     /*isWave=*/false, /*isInGroups=*/true},
    {"zb-h1", [](Schedule &schedule) { oneForwardOneBackward(schedule, 1); }, true},
    {"zb-h2", [](Schedule &schedule) { oneForwardOneBackward(schedule, 2); }, true},
    {"zb-v", zeroBubbleWave, /*splitsBackward=*/true, /*chunks=*/2, /*takesAnyChunks=*/false,
     /*isWave=*/true},
};

static const Generator *generatorOf(llvm::StringRef name, std::string &problem) {
  const Generator *generator =
      llvm::find_if(kGenerators, [&](const Generator &each) { return each.name == name; });
  if (generator != std::end(kGenerators))
    return generator;
  problem = "there is no schedule '" + name.str() + "'; there are";
  for (const Generator &each : kGenerators)
    problem += (&each == kGenerators ? " " : ", ") + each.name.str();
  problem += ", and files with names that end in .json";
  return nullptr;
}

std::optional<partita::pipe::Positions> partita::stages::layoutOf(const std::string &schedule,
                                                                  int64_t stages, int64_t chunks,
                                                                  std::string &problem) {
  pipe::Positions layout{stages};
  bool takesAnyChunks = false;
  if (isFile(schedule)) {
    std::optional<Schedule> file = readSchedule(schedule, problem);
    if (!file)
      return std::nullopt;
    layout.chunks = file->chunks, layout.isWave = file->isWave;
  } else if (const Generator *generator = generatorOf(schedule, problem)) {
    layout.chunks = generator->chunks, layout.isWave = generator->isWave;
    takesAnyChunks = generator->takesAnyChunks;
  } else {
    return std::nullopt;
  }
  if (chunks != 0 && chunks != layout.chunks && !takesAnyChunks) {
    problem = schedule + " has " +
              (layout.chunks == 1   ? "one chunk"
               : layout.chunks == 2 ? "two chunks"
                                    : std::to_string(layout.chunks) + " chunks") +
              " a stage, not " + std::to_string(chunks);
    if (isFile(schedule))
      problem += "; \"chunks\": " + std::to_string(chunks) + " in the file makes it as many";
    for (const Generator &each : kGenerators)
      if (each.takesAnyChunks && !isFile(schedule))
        problem += "; " + each.name.str() + " has any number";
    return std::nullopt;
  }
  layout.chunks = chunks == 0 ? layout.chunks : chunks;
  return layout;
}

std::optional<Schedule> partita::stages::makeSchedule(llvm::StringRef name, int stages,
                                                      int microBatches, int chunks,
                                                      std::string &problem) {
  const Generator *generator = generatorOf(name, problem);
  if (!generator)
    return std::nullopt;
  if (stages < 1 || microBatches < 1 || chunks < 1) {
    problem = "a schedule has one stage, one micro-batch and one chunk at least";
    return std::nullopt;
  }
  std::optional<pipe::Positions> layout = layoutOf(name.str(), stages, chunks, problem);
  if (!layout)
    return std::nullopt;
  if (generator->isInGroups && microBatches % stages != 0) {
    problem = name.str() + " runs micro-batches in groups of as many as there are stages: " +
              std::to_string(microBatches) + " are not a multiple of " + std::to_string(stages);
    return std::nullopt;
  }
  Schedule schedule{stages, microBatches, chunks, layout->isWave, generator->splitsBackward, {}};
  schedule.slots.resize(stages);
  generator->fill(schedule);
  return schedule;
}
