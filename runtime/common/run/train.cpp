// The training loop: fills the inputs, calls train_step, reports; validates and saves when due.

#include "common/run/train.h"

#include "common/checkpoint/gradients.h"
#include "common/data/drawn_samples.h"
#include "common/grouped.h"
#include "common/init/initialize.h"
#include "common/mesh/census.h"
#include "common/mesh/gathered.h"
#include "common/mesh/launch.h"
#include "common/options/lr_schedule_options.h"
#include "common/replicas/replicas.h"
#include "common/report/metrics.h"
#include "common/report/nodes_sent.h"
#include "common/report/summary.h"
#include "common/run/interruption.h"
#include "common/run/saving.h"
#include "common/seconds.h"
#include "common/start_marks.h"
#include "common/target.h"
#include "common/watch/rank_position.h"
#include "partita_rt/exit_status.h"
#include "partita_rt/init.h"
#include "partita_rt/scale_text.h"
#include "partita_rt/transfer.h"
#include "partita_rt/work.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>

namespace partita_rt {

namespace {

/// Returns the mean loss over the counted labels of the validation batches.
double evaluate(Rank &rank, const Session &session) {
  int64_t batches = session.eval->microBatches();
  if (int64_t most = session.options.evalBatches.value_or(16); most > 0)
    batches = std::min(batches, most);
  double sum = 0;
  int64_t tokens = 0;
  PhaseScope phase(rank, Phase::Validation);
  for (int64_t b = 0; b < batches; ++b) {
    session.eval->fill(rank, b, 1);
    noteWork(rank, Work::Forward);
    rank.report = {};
    call(rank, rank.stage->evalStep);
    checkNothingUnderWay(rank);
    sum += double(rank.report.loss) * double(rank.report.tokenCount);
    tokens += rank.report.tokenCount;
  }
  if (tokens == 0)
    fail("--eval-data: the validation batches hold no unmasked label");
  return sum / double(tokens);
}

std::string lossChange(double before, double after) {
  return format("%.4f", before) + " -> " + format("%.4f", after);
}

/// The state of the loop between steps.
struct Loop {
  Rank &rank;
  const Session &session;
  int64_t startStep; ///< updates done in the checkpoint
  ReplicaCheck replicas;
  Saving saving;
  std::unique_ptr<Progress> progress;
  std::unique_ptr<StepLog> log;
  std::unique_ptr<TensorBoard> board;
  std::unique_ptr<WorkClock> clock; ///< with --breakdown, of rank 0; with --stragglers, of each
  std::unique_ptr<Stragglers> stepStragglers, allStragglers; ///< of the log; of the run
  WorkTimes workSeconds = {};                                ///< of all steps
  std::optional<double> validationBefore, validationAfter;
  float firstLoss = 0, lastLoss = 0;
  /// Steps without an update: they do not advance the schedule. A program without a loss scale
  /// skips none, but the run that it continues may have.
  int64_t skipped;
  int64_t checkedUntil = 0;   ///< the last update of which the census is known to be right
  bool countsSkipped = false; ///< does the program?
  int64_t gathered = 0;       ///< the step whose samples are in the inputs
  int64_t done;               ///< the last completed step
  int interruptedBy = 0;      ///< the signal after which training ends
  double trainSeconds = 0;
  std::optional<Issued> firstStep; ///< what the first train_step issued
  Steps stepsLikeFirst;            ///< and which steps do
  NodesSent nodesSent;

  Loop(Rank &rank, const Session &session, const ResumePoint *resumed)
      : rank(rank), session(session), startStep(resumed ? resumed->info.step : 0),
        replicas(rank, session.options), saving(rank, session, resumed, replicas),
        skipped(resumed ? resumed->info.skipped : 0), done(startStep) {}
  bool speaks() const { return rank.rank == 0; }
  std::string nonfinite() const;
  void setControls(int64_t number);
  void checkReport(int64_t number) const;
  bool evaluatesAfter(int64_t number) const;
  void gatherNext(int64_t number);
  void step(int64_t number);
  void reportStep(int64_t number, const StepReport &report, double seconds,
                  std::optional<double> validation, const std::string &notFinite);
  void readSkipped();
  void endForLateSignal();
  void train();
  void setClock(WorkClock *value);
  WorkTimes stepTimes();
  std::unique_ptr<Stragglers> compareRanks() const;
  int64_t samplesPerStep() const {
    return session.data->samplesPerMicroBatch() * rank.program->accumulate;
  }
  void summarize(const ReducedCount &reduced) const;
};

/// Returns " (-100)", the ignored label.
std::string ignoredLabel(const Program &program) {
  for (const Input &input : program.inputs)
    if (input.role == InputRole::Labels || input.role == InputRole::Targets)
      return " (" + std::to_string(input.filler) + ")";
  return {};
}

/// Sets the values that the step reads from the host: its number, the update's, the scheduled
/// rates.
void Loop::setControls(int64_t number) {
  rank.step = number;
  rank.update = number - skipped;
  const RunOptions &options = session.options;
  ScheduledRates rates =
      scheduledRates(options.lrSchedule, rank.update - 1, options.hyper.learningRate);
  rank.learningRate = float(rates.rate);
  if (rates.setsBetas) {
    rank.hyper.beta1 = rates.beta1;
    rank.hyper.beta2 = rates.beta2;
  }
  rank.report = {};
}

/// Returns the name of the first parameter whose gradient has an infinite or NaN element.
std::string Loop::nonfinite() const {
  int index = rank.report.firstNonfinite;
  return index < 0 ? "the norm alone" : rank.program->parameters[index].name;
}

/// Are its loss and gradient norm finite?
static bool isFinite(const StepReport &report) {
  return std::isfinite(report.loss) && std::isfinite(report.gradientNorm);
}

/// Fails because of a step's result, which the same step would have again. `kind`: a word for it; `what`: step
/// and result, as all ranks see it; `rest`: the message after that.
[[noreturn]] static void failStep(int64_t step, const char *kind, const std::string &what,
                                  const std::string &rest) {
  noteFailedStep(step, kind, what);
  fail("%s%s", what.c_str(), rest.c_str());
}

/// Fails if training cannot continue after this step; a skipped step is not such a case.
void Loop::checkReport(int64_t number) const {
  const StepReport &report = rank.report;
  if (report.tokenCount != 0 && !report.scaleExhausted && isFinite(report))
    return;
  std::string step = "step " + std::to_string(number), loss = format("%f", double(report.loss));
  std::string first = nonfinite().substr(0, 200);
  const char *kindOfLoss = std::isnan(report.loss) ? "loss-nan" : "loss-infinite";
  if (report.tokenCount == 0)
    failStep(number, "no-label", "no label of " + step + " counts",
             ", all are ignored" + ignoredLabel(*rank.program) +
                 ": its loss would be the mean of nothing; leave such samples out of the data, or "
                 "take more per step (batch, --accumulate)");
  if (report.scaleExhausted && !std::isfinite(report.loss))
    failStep(
        number, kindOfLoss, "the loss of " + step + " is " + loss,
        ", which no loss scale changes: the forward pass itself is beyond its type; --precision "
        "bfloat16 has the range of float32, float16 ends at 65504");
  if (report.scaleExhausted)
    failStep(number, "loss-scale",
             "the gradients of " + step + " are infinite at the smallest loss scale",
             ", " + scaleText(double(report.lossScale)) + ", first that of " + first +
                 ": they are too large even so; a lower --lr or a --warmup-steps may help, or a "
                 "smaller minimum");
  std::string ownLoss;
  if (report.tokenCount < 0)
    ownLoss = std::string("; a loss that ignores some labels needs one that counts in each ") +
              (rank.program->accumulate > 1 ? "micro-batch" : "step");
  bool skips = report.skippedSteps > skipped; // the scale was too large; the next one is not
  if (!std::isfinite(report.loss) && !skips)
    failStep(number, kindOfLoss, "the loss of " + step + " is " + loss,
             std::string("; a lower --lr or a --warmup-steps") +
                 (rank.program->reads.gradientClip ? " or a --clip" : "") + " may help" + ownLoss);
  if (!std::isfinite(report.gradientNorm) && !skips)
    failStep(
        number, "gradient-norm",
        "the gradient norm of " + step + " is " + format("%f", double(report.gradientNorm)),
        ", so nothing can be clipped by it; the first parameter whose gradient is not finite is " +
            first + "; a lower --lr or a --warmup-steps may help");
}

bool Loop::evaluatesAfter(int64_t number) const {
  const RunOptions &options = session.options;
  return session.eval &&
         (number == *options.steps || (options.evalEvery > 0 && number % options.evalEvery == 0));
}

/// Gathers the next step's samples while the device computes this one. An error in them is reported
/// when their step begins.
void Loop::gatherNext(int64_t number) {
  // An evaluation's samples would come in between; a breakdown must show the time of gathering.
  if (number == *session.options.steps || evaluatesAfter(number) || clock)
    return;
  try {
    session.data->fill(rank, number, rank.program->accumulate);
    gathered = number + 1;
  } catch (const std::exception &) {
  }
}

void Loop::step(int64_t number) {
  const RunOptions &options = session.options;
  const Program &program = *rank.program;
  Clock::time_point begin = Clock::now();
  if (clock) {
    setClock(clock.get());
    clock->start();
  }
  noteStepNumber(rank, number);
  noteWork(rank, Work::Data);
  if (gathered != number)
    session.data->fill(rank, number - 1, program.accumulate);
  beginWork(rank, Work::Forward);
  setControls(number);
  GradientFile gradients;
  bool first = number == startStep + 1;
  bool wantsGradients = first && !options.grads.empty();
  rank.gradientSink = wantsGradients ? &gradients : replicas.watch(number);
  std::optional<Issued> before;
  if (first || rank.update > checkedUntil) // what a step issues may differ from here on
    before.emplace(rank);
  bool issued = call(rank, rank.stage->trainStep, [&] { gatherNext(number); });
  rank.gradientSink = nullptr;
  if (clock) {
    clock->stop();
    setClock(nullptr);
    if (options.stragglers && rank.position)
      addStep(*rank.position, *clock);
  }
  double seconds = secondsSince(begin);
  trainSeconds += seconds;
  checkNothingUnderWay(rank);
  if (!countsSkipped)
    rank.report.skippedSteps = skipped;
  if (before) {
    Issued its = Issued(rank).since(*before);
    if (issued) // what a device repeats has been checked
      checkCensus(rank, its, rank.update);
    nodesSent.note(rank, its.sent, rank.update);
    checkedUntil = endOfPhase(*rank.stage, rank.update);
  }
  if (first) {
    firstStep = Issued(rank).since(*before);
    stepsLikeFirst = stepsLike(*rank.stage, rank.update);
    checkMessages(rank, *firstStep);
    compareEnds(rank);
    checkTransfers(rank, firstStep->transfers);
    firstLoss = rank.report.loss;
  }
  if (wantsGradients)
    gradients.write(rank, options.grads);
  if (!isFinite(rank.report) && rank.report.skippedSteps == skipped)
    replicas.beforeFailure(number);
  checkReport(number);
  StepReport report = rank.report;
  lastLoss = report.loss;
  // Get the name now: the validation overwrites the report.
  std::string notFinite = report.skippedSteps > skipped ? nonfinite() : "";
  skipped = report.skippedSteps;

  std::optional<double> validation;
  if (evaluatesAfter(number))
    validation = validationAfter = evaluate(rank, session);
  if (speaks())
    reportStep(number, report, seconds, validation, notFinite);
  done = number;
  noteStep();
  replicas.afterStep(number, report);
  interruptedBy = saving.afterStep(number, skipped);
}

/// Reports before the step's checkpoint is written, because a run that resumes from it logs later
/// steps only.
void Loop::reportStep(int64_t number, const StepReport &report, double seconds,
                      std::optional<double> validation, const std::string &notFinite) {
  const Program &program = *rank.program;
  double tokens = double(session.data->unitsPerMicroBatch() * program.accumulate);
  StepLine line{number,
                number * samplesPerStep(),
                report,
                rank.learningRate,
                seconds,
                tokens / seconds,
                session.data->unit(),
                program.modelFlops / seconds,
                validation,
                notFinite,
                {},
                {},
                {}};
  if (setsBetas(session.options.lrSchedule))
    line.betas = {rank.hyper.beta1, rank.hyper.beta2};
  if (session.options.breakdown)
    line.times = stepTimes();
  if (stepStragglers)
    line.slowest = stepStragglers->look();
  if (log)
    log->add(line);
  if (board)
    board->add(line);
  progress->step(line);
}

std::unique_ptr<Stragglers> Loop::compareRanks() const {
  return std::make_unique<Stragglers>(*rank.program, rank.ranks,
                                      [this](int other) { return positionOf(rank, other); });
}

/// Returns the last step's times, and adds them to the run's.
WorkTimes Loop::stepTimes() {
  WorkTimes times;
  for (int kind = 0; kind < kWorkKinds; ++kind) {
    times[size_t(kind)] = clock->seconds(Work(kind));
    workSeconds[size_t(kind)] += times[size_t(kind)];
  }
  return times;
}

/// Collectives, messages and copies measure their waits on the same clock as the emitted step.
void Loop::setClock(WorkClock *value) {
  rank.clock = value;
  rank.forGroups([&](Communicator &group) { group.setClock(value); });
  rank.forChannels([&](ChannelEnd &end) { end.setClock(value); });
  rank.world->setClock(value);
}

/// Reads the number of steps that earlier runs have skipped, if the program counts them.
void Loop::readSkipped() {
  for (const ScalarState &state : rank.program->scalarStates)
    if (state.countsSkipped) {
      countsSkipped = true;
      skipped = *reinterpret_cast<const int64_t *>(
          HostView(rank, rank.persistent<int64_t>(state.offset), 8).data());
    }
}

/// A signal may come after the last step: while its checkpoint is written, and to one rank alone. All end by it,
/// or none does: one that ended by itself would be a lost rank for the others.
void Loop::endForLateSignal() {
  if (interruptedBy || session.options.checkpoint.empty())
    return; // without a folder, signals are not deferred
  for (int64_t signal : partita_rt::gathered(rank, int64_t(notedSignal()), "late signals"))
    interruptedBy = std::max(interruptedBy, int(signal));
}

void Loop::train() {
  const RunOptions &options = session.options;
  readSkipped();
  // Until here ranks read files, for different times: none may wait in a step for one that does.
  barrier(*rank.world, "the start of training");
  enterPhase(rank, Phase::Step);
  int64_t first = startStep + 1, last = options.steps.value_or(0);
  if (speaks() && options.resumeIfThere)
    writeLine("resume", options.resume ? options.checkpoint + ", step " + grouped(first - 1)
                                       : "no checkpoint in " + options.checkpoint + ": a new run");
  Steps steps = stepsLike(*rank.stage, first);
  if (speaks() && steps.part == Steps::Others && first > steps.exact.until &&
      options.given.count("--clip"))
    std::fprintf(
        stderr,
        "%s: warning: --clip applies to exact steps, and none follows: all others multiply "
        "gradients by the typical factor of those\n",
        rank.program->name);
  if (speaks() && !options.log.empty())
    log = std::make_unique<StepLog>(
        options.log, startStep,
        LogColumns{setsBetas(options.lrSchedule), options.breakdown, options.stragglers});
  if (speaks() && !options.tensorboard.empty())
    board = std::make_unique<TensorBoard>(tensorboardFolder(*rank.program, options),
                                          startStep > 0 ? startStep * samplesPerStep() + 1 : 0);
  if ((speaks() && options.breakdown) || options.stragglers)
    clock = std::make_unique<WorkClock>();
  if (session.eval) {
    validationBefore = validationAfter = evaluate(rank, session);
    if (speaks())
      writeLine("validation",
                format("%.4f", *validationBefore) + (last >= first ? " before training" : ""));
  }
  if (speaks() && options.stragglers) {
    stepStragglers = compareRanks();
    allStragglers = compareRanks();
  }
  if (speaks())
    progress =
        std::make_unique<Progress>(options, first, options.stragglers ? compareRanks() : nullptr);
  if (last >= first)
    replicas.begin(startStep);
  SignalsWait waiting;
  waiting.begin();
  for (int64_t number = first; number <= last && !interruptedBy; ++number)
    step(number);
  endForLateSignal();
  if (interruptedBy) {
    setEndedBy(interruptedBy);
    noteEndedBy(interruptedBy);
  }
  waiting.end();
  if (int late = notedSignal(); late && !interruptedBy && !options.checkpoint.empty())
    raise(late); // it came when the others had been asked: from here on a signal ends the process
  enterPhase(rank, Phase::Outputs);
  ReducedCount reduced = reducedByAll(rank);
  nodesSent.gather(rank);
  if (speaks()) {
    progress->finish();
    summarize(reduced);
  }
}

void Loop::summarize(const ReducedCount &reduced) const {
  int64_t steps = done - startStep;
  if (steps > 0) {
    writeLine("loss", lossChange(firstLoss, lastLoss) + " in " + grouped(steps) + " steps" +
                          (skipped > 0 ? "; " + grouped(skipped) + " skipped since step 1" : ""));
    double tokens = double(session.data->unitsPerMicroBatch() * rank.program->accumulate);
    writeLine("speed", grouped(int64_t(tokens * double(steps) / trainSeconds)) + " " +
                           session.data->unit() + "/s, " + duration(trainSeconds));
    if (double flops = rank.program->modelFlops; flops > 0)
      writeLine("", flopsText(flops * double(steps) / trainSeconds, "FLOP/s") +
                        " of the model: " + flopsText(flops, "FLOP") +
                        " per step, matmuls and attention (without its mask) of the forward "
                        "program, times 3, less those for gradients that nothing trained needs");
    if (session.options.breakdown)
      writeLine("time per step", breakdownText(workSeconds, steps) + " on rank 0");
    if (allStragglers && allStragglers->look())
      writeLine("ranks", allStragglers->text());
  }
  if (validationBefore && steps > 0)
    writeLine("validation", lossChange(*validationBefore, *validationAfter));
  if (steps > 0) {
    printCollectives(rank, *firstStep, stepsLikeFirst, done);
    printOverlap(reduced); // one of the lines on collectives
    printMessages(rank, *firstStep);
    nodesSent.print();
    printTransfers(firstStep->transfers);
  }
  replicas.summarize();
  printMemory(rank, session.options);
  if (steps > 0)
    saving.summarize(done, interruptedBy);
}

} // namespace

int runRankProgram(Rank &rank, const Session &session) {
  const RunOptions &options = session.options;
  rank.hyper = options.hyper;
  rank.seed = session.seed;
  enterPhase(rank, Phase::SetUp);
  const ResumePoint *resumed = initialize(rank, session.resumePoints);
  if (options.tune) {
    const Stage &stage = *rank.stage;
    int64_t perStep = rank.program->accumulate;
    DrawnSamples drawn;
    Batches(drawn, "--tune", *rank.program, 0, false, perStep).fill(rank, 0, perStep);
    std::vector<void (*)(Rank &)> functions = {stage.trainStep ? stage.trainStep : stage.forward};
    if (stage.evalStep)
      functions.push_back(stage.evalStep);
    tune(rank, functions, matmulsPath(options));
    return 0;
  }
  Loop loop(rank, session, resumed);
  loop.train();
  if (loop.interruptedBy)
    return loop.interruptedBy;
  if (!options.forward.empty()) {
    if (session.first)
      session.first->fill(rank, 0, 1);
    call(rank, rank.stage->forward);
    checkNothingUnderWay(rank);
    writeOutputs(rank, options.forward);
  }
  if (!options.dumpParameters.empty())
    writeParameters(rank, options.dumpParameters);
  return 0;
}

} // namespace partita_rt
