// Implements main() of emitted programs. Set-up errors are found before a rank starts, and reported
// once.

#include "common/alike/same_build.h"
#include "common/alike/same_options.h"
#include "common/mesh/census.h"
#include "common/mesh/launch.h"
#include "common/mesh/mesh.h"
#include "common/mesh/message.h"
#include "common/options/command_line.h"
#include "common/report/metrics.h"
#include "common/run/check_program.h"
#include "common/run/interruption.h"
#include "common/run/train.h"
#include "common/start_marks.h"
#include "common/watch/flight.h"
#include "partita_rt/checkpoint_folder.h"
#include "partita_rt/exit_status.h"
#include "partita_rt/printable.h"
#include "partita_rt/timeout.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace partita_rt {

namespace {

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
  if (std::optional<double> seconds = timeoutIn(std::vector<std::string>(argv + 1, argv + argc)))
    setTimeoutSeconds(std::max(kLeastToJoin, *seconds));
}

/// Returns when rank 0 asks for it, in microseconds of the time of day. All processes call it together.
static int64_t startTime(World &world) {
  using namespace std::chrono;
  auto now = duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
  return world.processes() > 1
             ? std::stoll(world.gather(std::to_string(now), "when the start begins")[0])
             : now;
}

/// Chooses where this start's flight recorders go, and sets those of an earlier one aside.
static void prepareFlights(World &world, const RunOptions &options) {
  bool isNamed = !options.flightRecorder.empty();
  bool isNew = !isNamed && !options.checkpoint.empty() && !inodeOf(options.checkpoint);
  setFlightFolder(flightFolderOf(options), isNamed ? MakeParents::Always
                                           : isNew ? MakeParents::UntilNoted
                                                   : MakeParents::Never);
  if (onlyText(options))
    return;
  setStartOfFlights(startTime(world));
  if (world.speaks())
    setEarlierFlightsAside();
}

int programMain(int argc, char **argv, const Program &program) {
  std::signal(SIGXFSZ, SIG_IGN); // a file beyond `ulimit -f` fails its write instead
  handleSignals(program.name, World::isFirstStarted(program));
  std::unique_ptr<World> joined;
  auto say = [&](const std::string &error) {
    std::fflush(stdout);
    if (joined) // if ranks have not met, they may when they are started again: that is no refusal
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
  if (world.processes() == 1)
    noteAlone();
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
    error = differingOptions(world.gather(
        optionsText(session.options, session.dataFile.get(), session.evalFile.get()), "options"));
  if (!error.empty())
    return say(error);
  if (world.speaks()) {
    printText(program, session.options);
    printWarnings(program, world, session);
  }
  setCheckpointFolder(session.options.checkpoint);
  prepareFlights(world, session.options);
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
  noteDone();
  return 0;
}

} // namespace partita_rt
