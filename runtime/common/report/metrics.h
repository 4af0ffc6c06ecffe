// A run's reports: progress, the log, TensorBoard. Rank 0 only.

#ifndef PARTITA_RT_COMMON_REPORT_METRICS_H
#define PARTITA_RT_COMMON_REPORT_METRICS_H

#include "common/report/event_file.h"
#include "common/report/growing_file.h"
#include "common/report/stragglers.h"
#include "common/run_options.h"
#include "partita_rt/work.h"

#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace partita_rt {

/// Seconds by kind of work.
using WorkTimes = std::array<double, kWorkKinds>;

/// The data of one step's line.
struct StepLine {
  int64_t step;
  int64_t samples; ///< of the run so far, including this step
  StepReport report;
  float learningRate;
  double seconds; ///< of the step
  double unitsPerSecond;
  const char *unit;      ///< "tokens" or "samples"
  double flopsPerSecond; ///< model FLOP/s of all ranks together; 0 if unknown
  std::optional<double> validationLoss;
  /// For a skipped step, the first parameter whose gradient is not finite; else "".
  std::string nonfinite;
  std::optional<WorkTimes> times;             ///< with --breakdown
  std::optional<std::array<double, 2>> betas; ///< if the schedule sets them
  std::optional<Stragglers::Found> slowest;   ///< with --stragglers, where it is known
};

/// Optional columns of the log.
struct LogColumns {
  bool betas = false, times = false, stragglers = false;
};

/// The log: CSV with a header line. Betas that the schedule sets, and times by kind, are additional
/// columns after all others. On resume, lines after the checkpoint's step are dropped, and missing
/// columns are filled in. A line that a killed run left unfinished is dropped too. Throws Error unless
/// the columns of the log and those of this run are equal or one list continues the other.
class StepLog {
public:
  StepLog(const std::string &path, int64_t resumedAt, LogColumns which);
  void add(const StepLine &line);

private:
  void claim();
  void begin(const std::vector<std::string> &lines, bool goesOn);
  std::string path;
  int descriptor = -1; ///< of the locked file, until there is `file`
  std::optional<GrowingFile> file;
  LogColumns which;
  size_t columns; ///< of the file
};

/// The same values as TensorBoard's scalars, over samples: those of DeepSpeed's monitor under its
/// tags (Train/Samples/train_loss, lr, loss_scale, elapsed_time_ms_forward, ...), the rest beside
/// them, and the parameter for which a step was skipped as text.
class TensorBoard {
public:
  /// `firstSample`: the first one after the checkpoint; 0 in a fresh run.
  TensorBoard(const std::string &folder, int64_t firstSample) : file(folder, firstSample) {}
  void add(const StepLine &line);

private:
  EventFile file;
};

/// Returns the folder for its files: DIR/NAME.
std::string tensorboardFolder(const Program &program, const RunOptions &options);

/// The lines of progress. A terminal shows one line that is rewritten several times a second. A
/// line is kept every print-every steps (default: ten times in all) and after each validation, on
/// any output.
class Progress {
public:
  /// `stragglers`: those since the last kept line; null: not asked for.
  Progress(const RunOptions &options, int64_t firstStep, std::unique_ptr<Stragglers> stragglers);
  void step(const StepLine &line);
  void finish();

private:
  std::string text(const StepLine &line) const;
  std::unique_ptr<Stragglers> stragglers;
  bool terminal;
  WorkTimes sinceLine = {}; ///< of the steps since the last kept line
  int64_t stepsSinceLine = 0;
  std::string skippedFor; ///< the last name among them
  int64_t first, last, every;
  std::chrono::steady_clock::time_point begin, drawn;
};

/// Formats the milliseconds per kind of one of `steps` steps: "data 0.1 ms, forward 3.2 ms (31 %),
/// ...".
std::string breakdownText(const WorkTimes &times, int64_t steps);
/// 1.5e9 -> "1.5 GFLOP/s".
std::string flopsText(double flops, const char *unit);
/// 3725 -> "1 h 02 min"; 75 -> "1 min 15 s"; 3.2 -> "3.2 s".
std::string duration(double seconds);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_REPORT_METRICS_H
