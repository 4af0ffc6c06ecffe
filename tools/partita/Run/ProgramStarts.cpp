//===- ProgramStarts.cpp - which program starts, with which processes -----------------------===//

#include "tools/partita/Run/ProgramStarts.h"
#include "tools/partita/Elastic.h"
#include "tools/partita/Options.h"
#include "tools/partita/Run/EndingSignals.h"
#include "tools/partita/Run/Patience.h"
#include "tools/partita/Run/Placeholders.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/xxhash.h"
#include <utility>

using namespace llvm;
using namespace partita::tool;

static std::string countText(int64_t ranks) {
  return std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks");
}

std::string ProgramStarts::change() const {
  return chosenBefore == chosen ? ""
                                : "with " + countText(programs[chosen].ranks) + " instead of " +
                                      std::to_string(programs[chosenBefore].ranks);
}

/// Returns a hash of a file's bytes; nothing if it cannot be read.
static std::optional<uint64_t> fingerprintOf(const std::string &path) {
  auto file = MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file)
    return std::nullopt;
  return xxh3_64bits((*file)->getBuffer());
}

std::string ProgramStarts::add(StringRef folder) {
  std::string problem, executable = findProgram(folder, problem);
  if (executable.empty())
    return problem;
  std::optional<json::Object> manifest = readManifest(folder, problem);
  if (!manifest)
    return problem;
  int64_t ranks = manifest->getInteger("ranks").value_or(1);
  programs.push_back({executable, std::move(*manifest), ranks, std::nullopt});
  return {};
}

std::string ProgramStarts::read(StringRef folder) {
  if (!tool::isElastic(folder))
    return add(folder);
  std::string problem;
  std::optional<ElasticFolder> elastic = readElastic(folder, problem);
  if (!elastic)
    return problem;
  for (const ElasticProgram &program : elastic->programs)
    if (problem = add(program.folder); !problem.empty())
      return problem;
  sizesText = elastic->ranksText();
  chosen = programs.size() - 1;
  return {};
}

std::string ProgramStarts::choose(int64_t ranks) {
  for (auto [i, program] : llvm::enumerate(programs))
    if (program.ranks == ranks) {
      chosen = i;
      return {};
    }
  return "has programs for " + sizesText + ", not for " + std::to_string(ranks);
}

/// Waits until the hosts have room for the smallest program, as long as there is
/// patience for it, and takes the largest one that they have room for. At a restart, a command that fails may
/// succeed later.
std::string ProgramStarts::waitForHosts() {
  std::string problem;
  bool isTold = false;
  auto isOver = [&] {
    problem.clear();
    std::optional<Hosts> found = discoverHosts(supervision.hostDiscovery, problem);
    if (!found && !wasStarted)
      return true;
    hosts = found.value_or(Hosts());
    int64_t slots = hosts.slots(), least = programs.front().ranks;
    if (found && slots >= least) {
      chosen = 0;
      while (chosen + 1 < programs.size() && programs[chosen + 1].ranks <= slots)
        ++chosen;
      return true;
    }
    if (found)
      problem = "--host-discovery found " + std::to_string(slots) +
                (slots == 1 ? " slot" : " slots") + "; " +
                (programs.size() > 1 ? "the smallest program" : "the program") + " needs " +
                std::to_string(least);
    if (!interruptingSignal() && !std::exchange(isTold, true)) {
      errs() << "partita " << command << ": waits up to " << textOf(Patience::Hosts)
             << " for hosts: " << printableLines(problem) << '\n';
      errs().flush();
    }
    return false;
  };
  waitUntil(secondsOf(Patience::Hosts), isOver, /*every=*/1);
  return problem;
}

/// Compiling again may have replaced a program meanwhile: a run goes on with what it began with.
std::string ProgramStarts::checkUnchanged() const {
  const Program &program = programs[chosen];
  if (fingerprintOf(program.executable) == program.fingerprint)
    return {};
  return program.executable + " is no longer the program that the run began with; to go on with "
                              "another one, start the run again with --resume";
}

std::string ProgramStarts::prepare(bool fewer) {
  chosenBefore = chosen;
  std::string problem;
  if (fewer)
    --chosen;
  else if (!supervision.hostDiscovery.empty())
    problem = waitForHosts();
  if (!wasStarted) {
    chosenBefore = chosen;
    for (Program &program : programs)
      if (supervision.maxRestarts > 0)
        program.fingerprint = fingerprintOf(program.executable);
  }
  wasStarted = true;
  return problem;
}

/// The launcher's words, with {ranks} and {hosts} replaced.
std::vector<std::string> ProgramStarts::launcherWords() const {
  std::vector<std::string> words = supervision.launcher;
  std::string ranks = std::to_string(programs[chosen].ranks), all = hosts.text();
  for (std::string &word : words)
    word = replacePlaceholders(
        word, [&](StringRef name) { return name == kRanksPlaceholder ? ranks : all; });
  return words;
}

Outcome ProgramStarts::run(std::vector<std::string> arguments) {
  std::vector<std::string> words = launcherWords();
  words.push_back(executable());
  llvm::append_range(words, arguments);
  return startsRanks() ? runRanks(command, executable(), std::move(words),
                                  static_cast<int>(programs[chosen].ranks))
                       : runProcess(command, executable(), std::move(words));
}
