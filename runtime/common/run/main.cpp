// Implements main() of emitted programs. Set-up errors are found before a rank starts, and reported
// once.

#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/folder.h"
#include "common/data/data.h"
#include "common/mesh/census.h"
#include "common/mesh/launch.h"
#include "common/mesh/mesh.h"
#include "common/mesh/message.h"
#include "common/run/command_line.h"
#include "common/run/interruption.h"
#include "common/run/metrics.h"
#include "common/run/same_build.h"
#include "common/run/same_options.h"
#include "common/run/train.h"
#include "common/start_marks.h"
#include "common/watch/flight.h"
#include "partita_rt/exit_status.h"
#include "partita_rt/fingerprint.h"
#include "partita_rt/printable.h"
#include "partita_rt/timeout.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace partita_rt {

namespace {

/// Fails now rather than at the end of the run, when the file would be written.
void checkWritable(const char *option, const std::string &path) {
  if (path.empty())
    return;
  size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    fail("%s: cannot write into %s: %s", option, folder.c_str(), std::strerror(errno));
  struct stat status;
  if (stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode))
    fail("%s: %s is a folder", option, path.c_str());
}

/// Checks a folder that is made later, so that a run that fails before leaves none. Returns it, or that
/// of its parents which exists.
std::string checkCanMake(const char *option, const std::string &path) {
  struct stat status;
  std::string around = path; // becomes the nearest existing parent
  while (stat(around.c_str(), &status) != 0 && errno == ENOENT) {
    size_t end = around.find_last_not_of('/');
    size_t slash = end == std::string::npos ? end : around.rfind('/', end);
    around = slash == std::string::npos ? "." : around.substr(0, std::max<size_t>(slash, 1));
  }
  bool there = stat(around.c_str(), &status) == 0;
  if (there && !S_ISDIR(status.st_mode))
    fail("%s: cannot make the folder %s: %s is not a folder", option, path.c_str(), around.c_str());
  if (!there || access(around.c_str(), W_OK | X_OK) != 0)
    fail("%s: cannot make the folder %s: %s", option, path.c_str(), std::strerror(errno));
  return around;
}

/// Checks that this process can write files into a folder, or make it, by doing that once: some file
/// systems say no only then.
void checkCanWriteInto(const char *option, const std::string &path) {
  std::string around = checkCanMake(option, path), probe = around + "/.partita-XXXXXX";
  if (!mkdtemp(probe.data()))
    fail("%s: cannot write into %s: %s", option, around.c_str(), std::strerror(errno));
  rmdir(probe.c_str());
}

/// Checks the folder for checkpoints, which is made with the first one.
void checkCheckpoints(const std::string &path) {
  struct stat status;
  if (stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode))
    return checkWritable("--checkpoint", path + "/step");
  checkCanMake("--checkpoint", path);
}

/// Do two paths name one file, whether or not it exists yet? False for anything but a regular file,
/// such as a terminal or /dev/null: nothing in it can be lost.
bool isSameFile(const std::string &a, const std::string &b) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::exists(a, error) && !fs::is_regular_file(a, error))
    return false;
  if (fs::equivalent(a, b, error))
    return true;
  std::error_code unresolved; // an error is reported when the file is opened
  auto resolved = [&](const std::string &path) {
    return fs::weakly_canonical(fs::absolute(path, unresolved), unresolved);
  };
  return resolved(a) == resolved(b) && !unresolved;
}

/// Fails if an output would overwrite an input of the run, the program or another output.
void checkOutputs(const Program &program, const RunOptions &o) {
  std::vector<std::pair<const char *, std::string>> written;
  auto add = [&](const char *option, const std::string &path) {
    if (path.empty())
      return;
    auto check = [&](const std::string &other, const std::string &what) {
      if (!other.empty() && isSameFile(path, other))
        fail("%s: %s is %s; choose another name", option, path.c_str(), what.c_str());
    };
    check(dataPath(o.data), "what --data reads");
    check(dataPath(o.evalData), "what --eval-data reads");
    if (option != std::string("--dump-parameters")) // written at once, after it has been read
      check(o.initFile, "what --init reads");
    for (const char *file : {"model.cpp", "model.cu", "manifest.json", "Makefile", program.name})
      check(o.programFolder + "/" + file, "a file of the program");
    if (*program.model)
      check(modelPath(program, o, program.model), "a file of the model");
    for (const ModelFile &file : program.modelFiles)
      check(modelPath(program, o, file.path), "a file of the model");
    for (const auto &[other, file] : written)
      check(file, std::string("what ") + other + " writes");
    std::error_code none;
    for (const CheckpointEntry &entry : checkpointsIn(o.checkpoint))
      if (std::filesystem::equivalent(std::filesystem::path(path).parent_path(), entry.path,
                                      none) &&
          entry.step >= 0)
        fail("%s: %s would lie in a checkpoint, and be removed with it; choose another name",
             option, path.c_str());
    written.push_back({option, path});
  };
  add("--log", o.log);
  add("--grads", o.grads);
  add("--dump-parameters", o.dumpParameters);
  add("--forward", o.forward);
}

/// Fails if the files with initial values have changed since the program was compiled.
void checkModelFiles(const Program &program, const RunOptions &options) {
  for (const ModelFile &known : program.modelFiles) {
    std::string path = modelPath(program, options, known.path);
    MappedFile file(path, "model file");
    uint64_t now = fingerprint(file.data(), file.size(), kModelFingerprintBytes);
    if (file.size() != known.bytes || now != known.fingerprint)
      fail("model file %s: the program was compiled against one of %lld bytes with fingerprint %s, "
           "this one has %lld bytes with fingerprint %s; compile the program again, or take other "
           "initial values with --init",
           path.c_str(), (long long)known.bytes, fingerprintText(known.fingerprint).c_str(),
           (long long)file.size(), fingerprintText(now).c_str());
  }
}

/// A step's samples are a function of its number and of the data, so with other data it is another
/// run.
void checkSameData(const Session &session, const CheckpointInfo &info) {
  const RunOptions &options = session.options;
  if (info.data != session.dataIdentity && !options.newData)
    fail("--resume: the checkpoint was trained on %s, %s has %s; give the same data, or --new-data "
         "to go on with these",
         info.data.empty() ? "data that it does not name" : info.data.c_str(), options.data.c_str(),
         session.dataIdentity.c_str());
}

/// Finds the checkpoints from which the run can go on, if the newest should be damaged: those of its
/// own order of the data. One that is damaged at first sight is skipped here.
void findResumePoints(Session &session, const std::string &folder) {
  std::string first;
  int damaged = 0;
  for (const CheckpointEntry &entry : checkpointsIn(folder)) {
    try {
      ResumePoint point{entry.path, readCheckpointInfo(entry.path)};
      auto isOfTheRun = [](const CheckpointInfo &a, const CheckpointInfo &b) {
        return a.seed == b.seed && a.shuffle == b.shuffle && a.data == b.data;
      };
      if (session.resumePoints.empty() || isOfTheRun(session.resumePoints[0].info, point.info))
        session.resumePoints.push_back(point);
    } catch (const Unreadable &) {
      if (session.resumePoints.empty())
        throw; // it may be in order: to go on from an older one would replace it
    } catch (const Error &error) {
      if (session.resumePoints.empty())
        session.warnings.push_back(skippedText(entry.path, error.what()));
      if (damaged++ == 0)
        first = error.what();
    }
  }
  if (session.resumePoints.empty() && damaged > 1)
    fail("%s", allDamagedText(folder, first).c_str());
  if (session.resumePoints.empty())
    fail("%s", damaged ? first.c_str() : newestCheckpoint(folder).c_str()); // says why
}

/// Checks the options against the checkpoint to resume from, and takes its order of the data.
void takeResumePoint(Session &session, const Program &program) {
  const RunOptions &options = session.options;
  findResumePoints(session, options.checkpoint);
  checkSameModel(program, session.resumePoints[0].folder);
  const CheckpointInfo &info = session.resumePoints[0].info;
  if (options.seed && *options.seed != info.seed)
    fail(
        "--seed: the checkpoint's data order has seed %llu, %llu asked for; leave the option out to "
        "go on with its order, or give a new run another folder in --checkpoint",
        (unsigned long long)info.seed, (unsigned long long)*options.seed);
  if (options.shuffle && *options.shuffle != info.shuffle)
    fail("--shuffle: the checkpoint's run took the samples %s, %s asked for; its order goes on "
         "without the option",
         info.shuffle ? "in a random order (on)" : "in the file's order (off)",
         *options.shuffle ? "on" : "off");
  session.seed = info.seed;
  session.shuffle = info.shuffle;
  if (options.steps && *options.steps < info.step)
    fail("--steps: the checkpoint has done %lld steps, %lld asked for", (long long)info.step,
         (long long)*options.steps);
}

void openSession(Session &session, const World &world, const Program &program) {
  RunOptions &options = session.options;
  world.check(program);
  session.seed = options.seed.value_or(1);
  session.shuffle = options.shuffle.value_or(true);
  if (options.resumeIfThere)
    options.resume = hasCheckpoint(options.checkpoint);
  bool saves = !options.checkpoint.empty() && options.steps.value_or(0) > 0;
  if (saves && !options.resume && !options.overwrite)
    checkNoCheckpoint(program, options.checkpoint); // in each process, before any can save
  if (options.resume)
    takeResumePoint(session, program);
  if (!options.data.empty()) {
    session.dataFile = openSamples(options.data, "--data", program);
    if (options.steps)
      session.data = std::make_unique<Batches>(*session.dataFile, "--data", program, session.seed,
                                               session.shuffle, program.accumulate);
    if (!options.forward.empty())
      session.first = std::make_unique<Batches>(*session.dataFile, "--data", program, 0, false, 1);
    session.dataIdentity = session.dataFile->identity();
    if (options.resume)
      checkSameData(session, session.resumePoints[0].info);
  }
  if (!options.evalData.empty()) {
    session.evalFile = openSamples(options.evalData, "--eval-data", program);
    session.eval =
        std::make_unique<Batches>(*session.evalFile, "--eval-data", program, 0, false, 1);
  }
  checkOutputs(program, options);
  checkWritable("--log", options.log);
  checkWritable("--grads", options.grads);
  checkWritable("--dump-parameters", options.dumpParameters);
  checkWritable("--forward", options.forward);
  if (options.tune)
    checkWritable("--tune", matmulsPath(options));
  if (world.speaks() && !options.checkpoint.empty() && (!options.resume || options.steps))
    checkCheckpoints(options.checkpoint);
  if (!options.flightRecorder.empty()) // each process writes its own
    checkCanWriteInto("--flight-recorder", options.flightRecorder);
  if (world.speaks() && !options.tensorboard.empty())
    checkCanMake("--tensorboard", tensorboardFolder(program, options));
  if (options.init == InitFrom::ModelFile && !options.resume)
    checkModelFiles(program, options);
}

/// Where ranks write what they did last, if the run fails.
std::string flightFolderOf(const RunOptions &options) {
  if (!options.flightRecorder.empty())
    return options.flightRecorder;
  if (!options.checkpoint.empty())
    return options.checkpoint + "/flight";
  return options.log.empty() ? "" : options.log + ".flight";
}

bool onlyCensus(const RunOptions &options) {
  return options.census && options.data.empty() && options.evalData.empty() && !options.steps &&
         options.dumpParameters.empty() && options.forward.empty();
}

/// Do the options ask only for a text to print, not for a run?
bool onlyText(const RunOptions &options) {
  return options.help || options.version || onlyCensus(options);
}

void printWarnings(const Program &program, const World &world, const Session &session) {
  if (!world.renumbered().empty())
    std::fprintf(stderr, "%s: %s\n", program.name, world.renumbered().c_str());
  for (const std::string &warning : session.warnings)
    std::fprintf(stderr, "%s: warning: %s\n", program.name, printable(warning).c_str());
  for (const Samples *samples : {session.dataFile.get(), session.evalFile.get()}) {
    if (std::string warning = samples ? samples->warning() : ""; !warning.empty())
      std::fprintf(stderr, "%s: warning: %s\n", program.name, printable(warning).c_str());
    if (std::string filled = samples ? samples->filled() : ""; !filled.empty())
      std::fprintf(stderr, "%s: %s\n", program.name, printable(filled).c_str());
  }
}

void printText(const Program &program, const RunOptions &options) {
  if (options.version)
    std::printf("%s: written by %s\n", program.name, program.compiler);
  else if (options.help)
    std::printf("%s", helpText(program).c_str());
  else if (options.census)
    std::printf("%s", censusText(program).c_str());
}

} // namespace

/// Ranks wait for each other before the options are checked, so their --timeout counts already; but
/// processes that start take a moment.
static void setTimeoutOfJoining(int argc, char **argv) {
  constexpr double kLeastSeconds = 30;
  if (std::optional<double> seconds = timeoutIn(std::vector<std::string>(argv + 1, argv + argc)))
    setTimeoutSeconds(std::max(kLeastSeconds, *seconds));
}

int programMain(int argc, char **argv, const Program &program) {
  std::signal(SIGXFSZ, SIG_IGN); // a file beyond `ulimit -f` fails its write instead
  handleSignals(program.name, World::isFirstStarted(program));
  std::unique_ptr<World> joined;
  auto say = [&](const std::string &error) {
    std::fflush(stdout);
    if (joined) // that ranks have not met may pass
      markError(error);
    if (joined && !joined->speaks())
      return failureStatus();
    std::string who = joined && joined->process() > 0
                          ? "rank " + std::to_string(joined->process()) + ": "
                          : std::string();
    std::fprintf(stderr, "%s: error: %s%s\n", program.name, who.c_str(), printable(error).c_str());
    return failureStatus();
  };
  setTimeoutOfJoining(argc, argv);
  try {
    joined = std::make_unique<World>(program);
  } catch (const std::exception &exception) {
    return say(exception.what());
  }
  World &world = *joined;
  Session session;
  std::string error;
  if (world.processes() > 1)
    error = differingBuilds(world.gather(buildText(program), "builds"));
  if (!error.empty())
    return say(error);
  try {
    timeoutSeconds(); // report errors in the environment now
    checkTransport();
    channelTests();
    checkProgram(program);
    session.options = parseOptions(argc, argv, program);
    if (session.options.timeout)
      setTimeoutSeconds(*session.options.timeout);
    if (!onlyText(session.options))
      openSession(session, world, program);
  } catch (const std::exception &exception) {
    error = exception.what();
  }
  error = world.agree(error);
  if (error.empty() && world.processes() > 1)
    error = differingSessions(world.gather(sessionText(session), "options"));
  if (!error.empty())
    return say(error);
  if (world.speaks()) {
    printText(program, session.options);
    printWarnings(program, world, session);
  }
  setCheckpointFolder(session.options.checkpoint);
  bool isNew = session.options.flightRecorder.empty() && !session.options.checkpoint.empty() &&
               !inodeOf(session.options.checkpoint);
  setFlightFolder(flightFolderOf(session.options), !session.options.flightRecorder.empty()
                                                       ? MakeParents::Always
                                                   : isNew ? MakeParents::UntilNoted
                                                           : MakeParents::Never);
  if (world.speaks() && !onlyText(session.options))
    setEarlierFlightsAside();
  std::atomic<int> signal{0};
  if (!onlyText(session.options))
    error = world.run(program, &session.options,
                      [&](Rank &rank) { signal = runRankProgram(rank, session); });
  bool isWritten = std::fflush(stdout) == 0 && !std::ferror(stdout);
  if (error.empty() && !isWritten &&
      !signal) // a signal may have ended the reader of the output too
    error = std::string("cannot write to the standard output: ") + std::strerror(errno);
  if (!error.empty())
    return say(error);
  if (signal) {
    joined.reset(); // all ranks are done; none ends before the others know
    endBySignal(signal);
  }
  return 0;
}

} // namespace partita_rt
