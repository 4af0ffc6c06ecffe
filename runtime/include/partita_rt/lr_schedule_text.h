// Schedules as text: NAME[,key=value]..., with DeepSpeed's names and the names of its parameters.
//
//     WarmupLR,warmup_num_steps=100,warmup_type=linear
//     OneCycle,cycle_min_lr=1e-4,cycle_max_lr=1e-3,cycle_first_step_size=500
//     cosine,warmup_steps=20,schedule_steps=1000,min_lr_ratio=0.1
//
// One table lists each schedule's keys, what they set, their bounds and whether they are required.
// It serves the run's option --lr-schedule, a program's table and the compiler's plan option.

#ifndef PARTITA_RT_LR_SCHEDULE_TEXT_H
#define PARTITA_RT_LR_SCHEDULE_TEXT_H

#include "lr_schedule.h"
#include "nearest.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <set>

namespace partita_rt {

/// Exclusive upper bound of learning rates and decays.
constexpr double kMostRate = 1e9;

/// Checks that the text is a number in [least, below); returns the problem, or empty. Both the
/// compiler and runs read their options with it.
inline std::string numberProblem(const std::string &text, double least, double below) {
  char *end = nullptr;
  bool plain = !text.empty() && text.find_first_not_of("0123456789+-.eE") == std::string::npos;
  double number = plain ? std::strtod(text.c_str(), &end) : 0;
  if (plain && !*end && std::isfinite(number) && number >= least && number < below)
    return "";
  char bounds[64];
  std::snprintf(bounds, sizeof(bounds), "from %g to below %g", least, below);
  return "'" + text + "' is not a number " + bounds;
}

struct LrScheduleName {
  LrScheduleKind kind;
  const char *name;
};

/// One key of a schedule: one of the three members is set.
struct LrScheduleKey {
  LrScheduleKind kind;
  const char *name;
  double LrSchedule::*real;
  int64_t LrSchedule::*integer;
  bool LrSchedule::*flag;
  double least, below; ///< of numbers: from `least` to below `below`
  bool required = false;
};

inline const std::vector<LrScheduleName> &lrScheduleNames() {
  static const std::vector<LrScheduleName> names = {
      {LrScheduleKind::Constant, "constant"},
      {LrScheduleKind::Cosine, "cosine"},
      {LrScheduleKind::WarmupLR, "WarmupLR"},
      {LrScheduleKind::WarmupDecayLR, "WarmupDecayLR"},
      {LrScheduleKind::WarmupCosineLR, "WarmupCosineLR"},
      {LrScheduleKind::OneCycle, "OneCycle"},
      {LrScheduleKind::LRRangeTest, "LRRangeTest"}};
  return names;
}

inline const char *nameOf(LrScheduleKind kind) {
  for (const LrScheduleName &each : lrScheduleNames())
    if (each.kind == kind)
      return each.name;
  return "";
}

inline const std::vector<LrScheduleKey> &lrScheduleKeys() {
  using S = LrSchedule;
  using K = LrScheduleKind;
  constexpr double kMost = kMostRate, kSteps = 1e15;
  auto real = [](K kind, const char *name, double S::*member, double below, bool required = false) {
    return LrScheduleKey{kind, name, member, nullptr, nullptr, 0, below, required};
  };
  auto integer = [](K kind, const char *name, int64_t S::*member, double least,
                    bool required = false) {
    return LrScheduleKey{kind, name, nullptr, member, nullptr, least, kSteps, required};
  };
  auto flag = [](K kind, const char *name, bool S::*member) {
    return LrScheduleKey{kind, name, nullptr, nullptr, member, 0, 0};
  };
  static const std::vector<LrScheduleKey> keys = {
      integer(K::Constant, "warmup_steps", &S::warmupSteps, 0),
      integer(K::Cosine, "warmup_steps", &S::warmupSteps, 0),
      integer(K::Cosine, "schedule_steps", &S::totalSteps, 1),
      real(K::Cosine, "min_lr_ratio", &S::endRatio, 1.0001),
      real(K::WarmupLR, "warmup_min_lr", &S::minRate, kMost),
      real(K::WarmupLR, "warmup_max_lr", &S::maxRate, kMost),
      integer(K::WarmupLR, "warmup_num_steps", &S::warmupSteps, 1),
      flag(K::WarmupLR, "warmup_type", &S::logarithmic),
      integer(K::WarmupDecayLR, "total_num_steps", &S::totalSteps, 1, true),
      real(K::WarmupDecayLR, "warmup_min_lr", &S::minRate, kMost),
      real(K::WarmupDecayLR, "warmup_max_lr", &S::maxRate, kMost),
      integer(K::WarmupDecayLR, "warmup_num_steps", &S::warmupSteps, 1),
      flag(K::WarmupDecayLR, "warmup_type", &S::logarithmic),
      integer(K::WarmupCosineLR, "total_num_steps", &S::totalSteps, 1, true),
      real(K::WarmupCosineLR, "warmup_min_ratio", &S::startRatio, kMost),
      integer(K::WarmupCosineLR, "warmup_num_steps", &S::warmupSteps, 1),
      real(K::WarmupCosineLR, "cos_min_ratio", &S::endRatio, kMost),
      flag(K::WarmupCosineLR, "warmup_type", &S::logarithmic),
      real(K::OneCycle, "cycle_min_lr", &S::minRate, kMost, true),
      real(K::OneCycle, "cycle_max_lr", &S::maxRate, kMost, true),
      real(K::OneCycle, "decay_lr_rate", &S::decayRate, kMost),
      integer(K::OneCycle, "cycle_first_step_size", &S::firstSize, 1),
      integer(K::OneCycle, "cycle_second_step_size", &S::secondSize, 1),
      integer(K::OneCycle, "cycle_first_stair_count", &S::firstStairs, 0),
      integer(K::OneCycle, "cycle_second_stair_count", &S::secondStairs, 0),
      integer(K::OneCycle, "decay_step_size", &S::decaySize, 0),
      flag(K::OneCycle, "cycle_momentum", &S::cycleMomentum),
      real(K::OneCycle, "cycle_min_mom", &S::minMomentum, 1),
      real(K::OneCycle, "cycle_max_mom", &S::maxMomentum, 1),
      real(K::OneCycle, "decay_mom_rate", &S::momentumDecayRate, kMost),
      real(K::LRRangeTest, "lr_range_test_min_lr", &S::minRate, kMost),
      integer(K::LRRangeTest, "lr_range_test_step_size", &S::stepSize, 1),
      real(K::LRRangeTest, "lr_range_test_step_rate", &S::stepRate, kMost),
      flag(K::LRRangeTest, "lr_range_test_staircase", &S::staircase),
  };
  return keys;
}

namespace lr_schedules {

/// The defaults of a kind's members, which are DeepSpeed's.
inline LrSchedule initial(LrScheduleKind kind) {
  LrSchedule s;
  s.kind = kind;
  if (kind == LrScheduleKind::WarmupLR || kind == LrScheduleKind::WarmupDecayLR ||
      kind == LrScheduleKind::WarmupCosineLR)
    s.warmupSteps = 1000;
  if (kind == LrScheduleKind::WarmupDecayLR)
    s.maxRate = 1e-3;
  if (kind == LrScheduleKind::LRRangeTest)
    s.minRate = 1e-3;
  if (kind == LrScheduleKind::Cosine)
    s.endRatio = 0.1;
  return s;
}

inline std::string setFlag(const LrScheduleKey &key, const std::string &value, LrSchedule &s) {
  bool isType = key.flag == &LrSchedule::logarithmic;
  std::string yes = isType ? "log" : "true", no = isType ? "linear" : "false";
  if (value != yes && value != no)
    return "'" + value + "' is neither " + yes + " nor " + no;
  s.*key.flag = value == yes;
  return {};
}

inline std::string setNumber(const LrScheduleKey &key, const std::string &value, LrSchedule &s) {
  std::string problem = numberProblem(value, key.least, key.below);
  if (key.integer &&
      (!problem.empty() || value.find_first_not_of("0123456789") != std::string::npos)) {
    char bounds[64];
    std::snprintf(bounds, sizeof(bounds), " of at least %g", key.least);
    return "'" + value + "' is not an integer" + bounds;
  }
  if (!problem.empty())
    return problem;
  if (key.integer)
    s.*key.integer = std::strtoll(value.c_str(), nullptr, 10);
  else
    s.*key.real = std::strtod(value.c_str(), nullptr);
  return {};
}

/// Sets one key=value.
inline std::string setKey(const std::string &item, std::set<std::string> &given, LrSchedule &s) {
  size_t equals = item.find('=');
  std::string name = item.substr(0, equals), kind = nameOf(s.kind);
  if (name.empty() || equals == std::string::npos)
    return "'" + item + "' is not of the form key=value";
  std::vector<std::string> known;
  for (const LrScheduleKey &key : lrScheduleKeys()) {
    if (key.kind != s.kind)
      continue;
    known.push_back(key.name);
    if (name != key.name)
      continue;
    if (!given.insert(name).second)
      return name + " is given twice";
    std::string value = item.substr(equals + 1);
    std::string problem = key.flag ? setFlag(key, value, s) : setNumber(key, value, s);
    return problem.empty() ? problem : name + ": " + problem;
  }
  return kind + " has no key '" + name + "'; did you mean '" + nearestOf(name, known) + "'?";
}

/// Are all required keys there?
inline std::string findMissing(const std::set<std::string> &given, const LrSchedule &s) {
  for (const LrScheduleKey &key : lrScheduleKeys())
    if (key.kind == s.kind && key.required && !given.count(key.name))
      return std::string(nameOf(s.kind)) + " needs " + key.name + ": " + nameOf(s.kind) + "," +
             key.name + "=...";
  return {};
}

} // namespace lr_schedules

/// Reads `text` into a schedule, and its keys into `given`. Returns what is wrong with it, or an empty
/// text; on an error both are unchanged.
inline std::string parseLrSchedule(const std::string &text, LrSchedule &schedule,
                                   std::set<std::string> &given) {
  size_t comma = text.find(',');
  std::string name = text.substr(0, comma);
  std::vector<std::string> known;
  const LrScheduleName *found = nullptr;
  for (const LrScheduleName &each : lrScheduleNames()) {
    known.push_back(each.name);
    if (name == each.name)
      found = &each;
  }
  if (!found) {
    std::string list;
    for (const std::string &each : known)
      list += (list.empty() ? "" : ", ") + each;
    return "there is no schedule '" + name + "'; did you mean '" + nearestOf(name, known) + "'? (" +
           list + ")";
  }
  LrSchedule parsed = lr_schedules::initial(found->kind);
  std::set<std::string> keys;
  while (comma != std::string::npos) {
    size_t next = text.find(',', comma + 1);
    std::string item = text.substr(comma + 1, next == std::string::npos ? next : next - comma - 1);
    if (std::string problem = lr_schedules::setKey(item, keys, parsed); !problem.empty())
      return problem;
    comma = next;
  }
  if (std::string problem = lr_schedules::findMissing(keys, parsed); !problem.empty())
    return problem;
  schedule = parsed;
  given = std::move(keys);
  return {};
}

inline std::string parseLrSchedule(const std::string &text, LrSchedule &schedule) {
  std::set<std::string> given;
  return parseLrSchedule(text, schedule, given);
}

/// Does the schedule give absolute rates, independent of the optimizer's base rate?
inline bool ignoresBaseRate(const LrSchedule &s) {
  return s.kind == LrScheduleKind::WarmupDecayLR || s.kind == LrScheduleKind::OneCycle ||
         s.kind == LrScheduleKind::LRRangeTest ||
         (s.kind == LrScheduleKind::WarmupLR && s.maxRate >= 0);
}

} // namespace partita_rt

#endif // PARTITA_RT_LR_SCHEDULE_TEXT_H
