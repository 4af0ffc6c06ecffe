// The parsed command line of a run (run/command_line.h parses it).

#ifndef PARTITA_RT_COMMON_RUN_OPTIONS_H
#define PARTITA_RT_COMMON_RUN_OPTIONS_H

#include "partita_rt/lr_schedule.h"
#include "partita_rt/program.h"

#include <map>
#include <optional>
#include <set>
#include <string>

namespace partita_rt {

enum class InitFrom { ModelFile, Seed, Safetensors };

struct RunOptions {
  /// The options of the command line that all ranks must have alike, and their values; "" for paths.
  std::map<std::string, std::string> given;
  bool help = false;
  bool version = false;
  bool census = false;
  bool tune = false;
  std::optional<int64_t> ranks;
  int64_t threads = 1; ///< BLAS threads of a process
  /// Seconds after which a rank that does not move is reported; default PARTITA_RT_TIMEOUT's.
  std::optional<double> timeout;

  std::string data; ///< see data.h for the formats
  std::string evalData;
  std::optional<int64_t> steps;
  int64_t evalEvery = 0;              ///< 0: only before and after
  std::optional<int64_t> evalBatches; ///< 0: all of the file; 16 where it is not given

  InitFrom init = InitFrom::ModelFile;
  uint64_t initSeed = 0;
  std::string initFile;
  std::optional<uint64_t> seed; ///< of the data order; default 1
  std::optional<bool> shuffle;  ///< the training data; default on

  Hyper hyper; ///< the program's defaults, overridden
  /// The program's or --lr-schedule's, with --warmup-steps, --schedule-steps and --min-lr-ratio; a
  /// cosine without a length is as long as the run.
  LrSchedule lrSchedule;
  std::set<std::string> lrScheduleKeys; ///< that --lr-schedule gives
  std::optional<int64_t> warmupSteps, scheduleSteps;
  std::optional<double> minRateRatio;

  std::string log;
  std::string flightRecorder;       ///< folder; "": beside the checkpoints, or the log
  std::string tensorboard, jobName; ///< folder, and name of its subfolder
  bool breakdown = false, stragglers = false;
  std::string checkpoint;             ///< folder
  int64_t checkpointEvery = 0;        ///< steps; 0: at the end only
  double checkpointEverySeconds = 0;  ///< likewise
  std::optional<int64_t> keep;        ///< number of checkpoints; default 2
  std::optional<bool> checkpointCopy; ///< write a copy while training goes on; default on
  bool resume = false;
  bool resumeIfThere = false; ///< --resume auto: sets `resume` if the folder has a checkpoint
  bool newData = false;       ///< resume on data other than the checkpoint's
  bool overwrite = false;     ///< replace the folder's checkpoint instead of resuming from it
  int64_t printEvery = 0;     ///< 0: ten lines in all
  int64_t checkReplicas = 0;  ///< steps between checks; 0: none
  std::string grads, dumpParameters, forward;

  std::string programFolder; ///< base of the relative paths of parameters' values
};

/// Returns the path of a model file, given its path in the program's tables and calls.
std::string modelPath(const Program &program, const RunOptions &options, const char *path);

/// Returns the file of --tune's choices: matmuls.json beside the program.
std::string matmulsPath(const RunOptions &options);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_RUN_OPTIONS_H
