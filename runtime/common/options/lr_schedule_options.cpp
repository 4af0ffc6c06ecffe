// The options that shape a run's learning rates (lr_schedule_options.h).

#include "common/options/lr_schedule_options.h"

#include "partita_rt/lr_schedule_text.h"

namespace partita_rt {

namespace {

/// An option that sets a member of the schedule, as keys do.
struct MemberOption {
  const char *name;
  int64_t LrSchedule::*integer;
  double LrSchedule::*real;
};
constexpr MemberOption kMemberOptions[] = {{"--warmup-steps", &LrSchedule::warmupSteps, nullptr},
                                           {"--schedule-steps", &LrSchedule::totalSteps, nullptr},
                                           {"--min-lr-ratio", nullptr, &LrSchedule::endRatio}};

/// The key that sets the same in schedules of this kind, or null.
const LrScheduleKey *keyFor(const MemberOption &option, LrScheduleKind kind) {
  for (const LrScheduleKey &key : lrScheduleKeys())
    if (key.kind == kind && key.integer == option.integer && key.real == option.real)
      return &key;
  return nullptr;
}

/// Fails unless the option applies to the schedule: DeepSpeed's schedules have keys instead, or no
/// counterpart.
void checkMember(const MemberOption &option, const RunOptions &options) {
  LrScheduleKind kind = options.lrSchedule.kind;
  const char *name = nameOf(kind);
  const LrScheduleKey *key = keyFor(option, kind);
  if (!key)
    fail("%s: has no effect on the schedule %s", option.name, name);
  if (kind != LrScheduleKind::Constant && kind != LrScheduleKind::Cosine)
    fail("%s: %s has a key for it: --lr-schedule %s,%s=...", option.name, name, name, key->name);
  if (options.lrScheduleKeys.count(key->name))
    fail("%s: --lr-schedule says %s already", option.name, key->name);
}

void checkRate(const RunOptions &options, const std::set<std::string> &given) {
  const LrSchedule &schedule = options.lrSchedule;
  if (!given.count("--lr") || !ignoresBaseRate(schedule))
    return;
  std::string name = nameOf(schedule.kind);
  fail("--lr: has no effect, %s has its own rates: --lr-schedule %s,%s=...", name.c_str(),
       name.c_str(),
       schedule.kind == LrScheduleKind::OneCycle      ? "cycle_max_lr"
       : schedule.kind == LrScheduleKind::LRRangeTest ? "lr_range_test_min_lr"
                                                      : "warmup_max_lr");
}

void checkBetas(const RunOptions &options, const std::set<std::string> &given,
                const Program &program) {
  const LrSchedule &schedule = options.lrSchedule;
  if (!setsBetas(schedule))
    return;
  if (!program.reads.beta1 || !program.reads.beta2)
    fail("--lr-schedule: %s cycles beta1, and the program's optimizer, %s, has no betas; give "
         "cycle_momentum=false",
         nameOf(schedule.kind), program.optimizer);
  for (const char *option : {"--beta1", "--beta2"})
    if (given.count(option))
      fail("%s: has no effect, %s sets both betas; give cycle_momentum=false", option,
           nameOf(schedule.kind));
  for (double beta : {schedule.minMomentum, schedule.maxMomentum})
    if (!(float(beta) < 1))
      fail(
          "--lr-schedule: %s cycles beta1 through %.10g, which is 1 as a float; it must stay below "
          "1",
          nameOf(schedule.kind), beta);
  int64_t last = options.steps.value_or(0);
  if (double beta = scheduledRates(schedule, last - 1, 1).beta1; last > 0 && !(float(beta) < 1))
    fail("--lr-schedule: %s lets beta1 grow to %g in step %lld, it must stay below 1; a smaller "
         "decay_mom_rate, or a larger decay_step_size",
         nameOf(schedule.kind), beta, (long long)last);
}

} // namespace

bool setsBetas(const LrSchedule &schedule) { return scheduledRates(schedule, 0, 1).setsBetas; }

void settleSchedule(RunOptions &options, const std::set<std::string> &given,
                    const Program &program) {
  LrSchedule &schedule = options.lrSchedule;
  for (const MemberOption &option : kMemberOptions)
    if (given.count(option.name))
      checkMember(option, options);
  schedule.warmupSteps = options.warmupSteps.value_or(schedule.warmupSteps);
  schedule.endRatio = options.minRateRatio.value_or(schedule.endRatio);
  schedule.totalSteps = options.scheduleSteps.value_or(schedule.totalSteps);
  if (schedule.kind == LrScheduleKind::Cosine && schedule.totalSteps == 0)
    schedule.totalSteps = options.steps.value_or(0);
  checkRate(options, given);
  checkBetas(options, given, program);
}

} // namespace partita_rt
