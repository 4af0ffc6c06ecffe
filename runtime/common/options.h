// The command line of an emitted program.

#ifndef PARTITA_RT_COMMON_OPTIONS_H
#define PARTITA_RT_COMMON_OPTIONS_H

#include "partita_rt/program.h"

#include <optional>
#include <string>

namespace partita_rt {

enum class InitFrom { ModelFile, Seed, Safetensors };
enum class Schedule { Constant, Cosine };

struct RunOptions {
  bool help = false;
  bool census = false;
  std::optional<int64_t> ranks;
  int64_t threads = 1; ///< BLAS threads per rank

  std::string data; ///< see data.h for the formats
  std::string evalData;
  std::optional<int64_t> steps;
  int64_t evalEvery = 0;    ///< 0: only before and after
  int64_t evalBatches = 16; ///< 0: all of the file

  InitFrom init = InitFrom::ModelFile;
  uint64_t initSeed = 0;
  std::string initFile;
  std::optional<uint64_t> seed; ///< of the data order; default 1

  Hyper hyper; ///< the program's defaults, overridden
  Schedule schedule = Schedule::Constant;
  int64_t warmupSteps = 0;
  std::optional<int64_t> scheduleSteps; ///< default: steps
  double minRateRatio = 0.1;

  std::string log;
  std::string checkpoint; ///< folder
  int64_t checkpointEvery = 0;
  bool resume = false;
  bool newData = false;   ///< resume on other data than the checkpoint's
  int64_t printEvery = 0; ///< 0: ten lines in all
  std::string grads, dumpParameters, forward;

  std::string programFolder; ///< relative paths of parameters' values start here

  /// Learning rate of update `step` (from 1). Warm-up is linear, r * step / W for step <= W; then
  /// `constant` stays at r and `cosine` falls from r at step W to ratio * r at the last step N:
  /// r * (ratio + (1 - ratio) * (1 + cos(pi * (step - W) / (N - W))) / 2).
  float learningRate(int64_t step) const;
};

/// Throws Error: an unknown option (with the nearest known one), a missing or malformed argument,
/// combinations that make no sense, what this program cannot do.
RunOptions parseOptions(int argc, char **argv, const Program &program);

/// Where a file of the model is, by its path in the program's tables and calls.
std::string modelPath(const Program &program, const RunOptions &options, const char *path);

std::string helpText(const Program &program);

/// Throws Error when the tables contradict themselves (program.h).
void checkProgram(const Program &program);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_OPTIONS_H
