//===- Scheduler.cpp - the learning-rate schedule ---------------------------------------------===//
//
// Names and parameters are DeepSpeed's own, so the plan option is the block as one text:
// "WarmupLR,warmup_min_lr=0,warmup_max_lr=3e-05,warmup_num_steps=100,warmup_type=log".
//
//===----------------------------------------------------------------------------------------===//

#include "lib/DeepSpeed/Resolver.h"
#include "partita/Support/NearestNames.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace partita::config;

static constexpr StringLiteral kType = "scheduler.type";
static constexpr Key kSchedulerRows[] = {
    {"scheduler", block, "null", Obeyed, "--lr-schedule; the rate is constant where it is absent"},
    {kType, text, "null", Obeyed,
     "WarmupLR, WarmupDecayLR, WarmupCosineLR, OneCycle or LRRangeTest, with DeepSpeed's formulas; "
     "a skipped step does not advance them"},
    {"scheduler.params", block, "{}", Obeyed,
     "become parameters of --lr-schedule under their own names; one that the schedule lacks is an "
     "error"},
    {"scheduler.params.warmup_min_lr", number(0), "0", Obeyed, "of WarmupLR and WarmupDecayLR",
     "0"},
    {"scheduler.params.warmup_max_lr", number(0), "null", Obeyed,
     "of WarmupLR and WarmupDecayLR; absent, WarmupLR takes the optimizer's rate (DeepSpeed's "
     "code; its documentation says 0.001) and WarmupDecayLR 0.001",
     "the optimizer's rate"},
    {"scheduler.params.warmup_num_steps", integer(1), "1000", Obeyed,
     "of the three with a warm-up; DeepSpeed raises values below 2 to 2",
     "--warmup-steps, else no warm-up"},
    {"scheduler.params.warmup_type", choice("log|linear"), "\"log\"", Obeyed,
     "of the three with a warm-up"},
    {"scheduler.params.total_num_steps", integer(1), "null", Obeyed,
     "of WarmupDecayLR and WarmupCosineLR, which need it", "--total-steps"},
    {"scheduler.params.warmup_min_ratio", number(0, 1), "0", Obeyed, "of WarmupCosineLR"},
    {"scheduler.params.cos_min_ratio", number(0, 1), "0.0001", Obeyed,
     "of WarmupCosineLR, of the optimizer's rate"},
    {"scheduler.params.cycle_min_lr", number(0), "null", Obeyed, "of OneCycle, which needs it"},
    {"scheduler.params.cycle_max_lr", number(0), "null", Obeyed, "of OneCycle, which needs it"},
    {"scheduler.params.decay_lr_rate", number(0), "0", Obeyed, "of OneCycle"},
    {"scheduler.params.cycle_first_step_size", integer(1), "2000", Obeyed, "of OneCycle"},
    {"scheduler.params.cycle_second_step_size", integer(1), "null", Obeyed,
     "of OneCycle; absent as long as the first"},
    {"scheduler.params.cycle_first_stair_count", integer(0), "0", Obeyed, "of OneCycle"},
    {"scheduler.params.cycle_second_stair_count", integer(0), "null", Obeyed,
     "of OneCycle; absent as many as the first"},
    {"scheduler.params.decay_step_size", integer(0), "0", Obeyed, "of OneCycle"},
    {"scheduler.params.cycle_momentum", boolean, "true", Obeyed,
     "of OneCycle: beta1 runs against the rate (and beta2 is 0.99), for optimizers with betas"},
    {"scheduler.params.cycle_min_mom", number(0, 1), "0.8", Obeyed, "of OneCycle"},
    {"scheduler.params.cycle_max_mom", number(0, 1), "0.9", Obeyed, "of OneCycle"},
    {"scheduler.params.decay_mom_rate", number(0), "0", Obeyed, "of OneCycle"},
    {"scheduler.params.lr_range_test_min_lr", number(0), "0.001", Obeyed, "of LRRangeTest"},
    {"scheduler.params.lr_range_test_step_size", integer(1), "2000", Obeyed, "of LRRangeTest"},
    {"scheduler.params.lr_range_test_step_rate", number(0), "1.0", Obeyed, "of LRRangeTest"},
    {"scheduler.params.lr_range_test_staircase", boolean, "false", Obeyed, "of LRRangeTest"},
    {"scheduler.params.last_batch_iteration", integer(-1), "-1", Refused,
     "a run that goes on takes its step from the checkpoint: run --resume"},
};

Section partita::config::schedulerKeys() { return {"Scheduler", kSchedulerRows}; }

namespace {
struct Schedule {
  StringLiteral name;
  StringLiteral params, needed; ///< separated by '|'
};
} // namespace

static constexpr Schedule kSchedules[] = {
    {"WarmupLR", "warmup_min_lr|warmup_max_lr|warmup_num_steps|warmup_type|last_batch_iteration",
     ""},
    {"WarmupDecayLR",
     "total_num_steps|warmup_min_lr|warmup_max_lr|warmup_num_steps|warmup_type|last_batch_"
     "iteration",
     "total_num_steps"},
    {"WarmupCosineLR",
     "total_num_steps|warmup_min_ratio|warmup_num_steps|cos_min_ratio|warmup_type|"
     "last_batch_iteration",
     "total_num_steps"},
    {"OneCycle",
     "cycle_min_lr|cycle_max_lr|decay_lr_rate|cycle_first_step_size|cycle_second_step_size|"
     "cycle_first_stair_count|cycle_second_stair_count|decay_step_size|cycle_momentum|"
     "cycle_min_mom|cycle_max_mom|decay_mom_rate|last_batch_iteration",
     "cycle_min_lr|cycle_max_lr"},
    {"LRRangeTest",
     "lr_range_test_min_lr|lr_range_test_step_size|lr_range_test_step_rate|"
     "lr_range_test_staircase|last_batch_iteration",
     ""},
};

static std::string paramPath(StringRef name) { return ("scheduler.params." + name).str(); }

static SmallVector<StringRef> wordsOf(StringRef text) {
  SmallVector<StringRef> words;
  text.split(words, '|', -1, /*KeepEmpty=*/false);
  return words;
}

static const Schedule *chooseSchedule(Resolver &r) {
  std::string said = r.word(kType);
  for (const Schedule &schedule : kSchedules)
    if (schedule.name == said)
      return &schedule;
  auto names =
      map_to_vector(kSchedules, [](const Schedule &each) -> StringRef { return each.name; });
  StringRef best = partita::nearestName(said, names);
  r.fail(kType, "there is no schedule " + quoted(said) +
                    (best.empty() ? "; there are WarmupLR, WarmupDecayLR, WarmupCosineLR, OneCycle "
                                    "and LRRangeTest"
                                  : "; did you mean '" + best.str() + "'?"));
  return nullptr;
}

/// Returns the steps that the command line gives for a parameter.
static std::optional<int64_t> stepsOf(const Resolver &r, StringRef name) {
  return name == "warmup_num_steps"  ? r.facts.warmupSteps
         : name == "total_num_steps" ? r.facts.totalSteps
                                     : std::nullopt;
}

static bool checkParams(Resolver &r, const Schedule &schedule) {
  SmallVector<StringRef> known = wordsOf(schedule.params);
  for (const Key &key : kSchedulerRows)
    if (key.block() == "scheduler.params" && r.isGiven(key.path) &&
        !is_contained(known, key.name()))
      return r.document.error(r.given[key.path].at, quoted(key.name()) + " is not a parameter of " +
                                                        schedule.name + ", which has " +
                                                        join(ArrayRef(known).drop_back(), ", ")),
             false;
  for (StringRef name : wordsOf(schedule.needed))
    if (!r.isGiven(paramPath(name)) && !stepsOf(r, name))
      return r.fail(kType, schedule.name + " needs " + quoted(paramPath(name)));
  return true;
}

/// Returns the text for an "auto" of a schedule, and its origin; nothing if it is unknown.
static std::optional<std::pair<std::string, std::string>> automatic(Resolver &r, StringRef name) {
  if (name == "warmup_min_lr")
    return std::pair("0", "default");
  if (name == "warmup_max_lr")
    return std::pair(numberText(r.rate), "the optimizer's rate");
  bool isTotal = name == "total_num_steps";
  if (std::optional<int64_t> steps = stepsOf(r, name))
    return std::pair(std::to_string(isTotal ? *steps : std::max<int64_t>(2, *steps)),
                     isTotal ? "command line, --total-steps" : "command line, --warmup-steps");
  if (isTotal)
    return std::nullopt;
  return std::pair("2", "default: no warm-up, which DeepSpeed makes 2 steps of");
}

/// Checks steps that the command line and the file both give.
static bool checkSteps(Resolver &r, const Schedule *schedule, StringRef name, StringRef option) {
  std::string path = paramPath(name);
  std::optional<int64_t> given = stepsOf(r, name);
  if (!given)
    return true;
  if (!schedule || !is_contained(wordsOf(schedule->params), name))
    return r.fail(kType, option + " has no effect: " +
                             (schedule ? schedule->name + " has no " + name
                                       : "there is no scheduler with " + name));
  if (!r.isGiven(path) || r.isAuto(path) || r.integer(path) == *given)
    return true;
  return r.fail(path, r.name(path) + " is " + Twine(r.integer(path)) +
                          ", but the command line says " + option + " " + Twine(*given) +
                          "; leave one of them out");
}

static std::string textOf(const Value &value) {
  if (value.kind == Value::Text)
    return StringRef(value.text).lower();
  return value.kind == Value::Boolean ? (value.boolean ? "true" : "false") : numberText(value.real);
}

/// Returns the block as the plan option's text; empty if an "auto" has no value.
static std::string scheduleText(Resolver &r, const Schedule &schedule) {
  std::string text = schedule.name.str();
  bool isComplete = true;
  SmallVector<StringRef> names = wordsOf(schedule.params);
  for (StringRef name : ArrayRef(names).drop_back()) {
    std::string path = paramPath(name);
    const Given *given = r.find(path);
    bool isImplied = (name == "warmup_max_lr" && schedule.name == "WarmupLR") || stepsOf(r, name);
    if (given ? given->value->isAuto() : isImplied) {
      auto found = automatic(r, name);
      if (!found) {
        r.lacks(path, "--total-steps N");
        isComplete = false;
        continue;
      }
      r.value(path, found->first, found->second);
      text += ("," + name + "=" + found->first).str();
    } else if (given) {
      text += ("," + name + "=" + textOf(*given->value)).str();
    }
  }
  return isComplete ? text : "";
}

static bool checkOneCycle(Resolver &r) {
  constexpr StringLiteral low = "scheduler.params.cycle_min_lr",
                          high = "scheduler.params.cycle_max_lr",
                          momentum = "scheduler.params.cycle_momentum";
  if (r.real(low) > r.real(high))
    return r.fail(high, "cycle_max_lr " + numberText(r.real(high)) + " is below cycle_min_lr " +
                            numberText(r.real(low)));
  std::string type = r.word("optimizer.type");
  bool isGiven = !type.empty() && !StringRef(type).equals_insensitive("null"); // else AdamW
  std::optional<OptimizerFacts> optimizer = factsOfOptimizer(isGiven ? type : "AdamW");
  if (!r.flag(momentum) || (optimizer && optimizer->hasBetas))
    return true;
  StringRef path = r.has(momentum) ? StringRef(momentum) : StringRef(kType);
  return r.fail(path, "OneCycle's cycle_momentum moves an optimizer's betas, and " +
                          quoted(r.word("optimizer.type")) +
                          " has none; set \"cycle_momentum\": false");
}

/// Checks that the command line's steps agree with the file, and have an effect.
static bool checkCommandLine(Resolver &r, const Schedule *schedule) {
  return checkSteps(r, schedule, "warmup_num_steps", "--warmup-steps") &&
         checkSteps(r, schedule, "total_num_steps", "--total-steps");
}

bool partita::config::resolveScheduler(Resolver &r) {
  if (!r.has("scheduler"))
    return checkCommandLine(r, nullptr);
  if (!r.has(kType))
    return r.document.error(r.given["scheduler"].at,
                            r.name("scheduler") + " has no \"type\", such as \"WarmupLR\""),
           false;
  const Schedule *schedule = chooseSchedule(r);
  if (!schedule || !checkParams(r, *schedule) || !checkCommandLine(r, schedule))
    return false;
  if (schedule->name == "OneCycle" && !checkOneCycle(r))
    return false;
  std::string text = scheduleText(r, *schedule);
  return text.empty() || r.set(kType, "lr-schedule", text);
}
