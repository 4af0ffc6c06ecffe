// What a run says: progress, the log, the summary. Rank 0 only.

#ifndef PARTITA_RT_COMMON_METRICS_H
#define PARTITA_RT_COMMON_METRICS_H

#include "common/options.h"

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>

namespace partita_rt {

/// One step's line.
struct StepLine {
  int64_t step;
  float loss;
  float gradientNorm;
  float learningRate;
  double unitsPerSecond;
  const char *unit; ///< "tokens" or "samples"
  std::optional<double> validationLoss;
};

/// CSV with a header line. On resume, lines after the checkpoint's step are dropped first.
class StepLog {
public:
  StepLog(const std::string &path, int64_t resumedAt);
  ~StepLog();
  StepLog(const StepLog &) = delete;
  StepLog &operator=(const StepLog &) = delete;
  void add(const StepLine &line);

private:
  std::string path;
  FILE *file;
};

/// On a terminal one line is rewritten several times a second; everywhere, every print-every steps
/// (default: ten times in all) and after each validation a line stays.
class Progress {
public:
  Progress(const RunOptions &options, int64_t firstStep);
  void step(const StepLine &line);
  void finish();

private:
  std::string text(const StepLine &line) const;
  bool terminal;
  int64_t first, last, every;
  std::chrono::steady_clock::time_point begin, drawn;
};

/// 1234567 -> "1,234,567".
std::string grouped(int64_t value);
/// 3725 -> "1 h 02 min"; 75 -> "1 min 15 s"; 3.2 -> "3.2 s".
std::string duration(double seconds);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_METRICS_H
