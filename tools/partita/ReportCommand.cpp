//===- ReportCommand.cpp - partita report -----------------------------------------------------===//
//
// One screen about a program and, when there is a log, about its last run.
//
//===------------------------------------------------------------------------------------------------===//

#include "tools/partita/Program.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace llvm;
using namespace partita::tool;

namespace {
/// What the columns of a run's log say.
struct Run {
  int64_t steps = 0, lastStep = 0;
  double firstLoss = 0, lastLoss = 0;
  std::vector<double> speeds;
  std::optional<double> firstValidation, lastValidation;
};
} // namespace

/// Reads the log that the program wrote (step, loss, gradient norm, rate, tokens/s, validation
/// loss); returns what is wrong with it, or nothing.
static std::string readLog(StringRef path, Run &run) {
  auto buffer = MemoryBuffer::getFile(path);
  if (!buffer)
    return (path + ": " + buffer.getError().message()).str();
  SmallVector<StringRef> lines;
  (*buffer)->getBuffer().split(lines, '\n', -1, /*KeepEmpty=*/false);
  if (lines.empty() || !lines[0].starts_with("step,loss,"))
    return (path + ": is not the log of a run: its first line does not begin with 'step,loss,'")
        .str();
  for (auto [index, line] : enumerate(ArrayRef(lines).drop_front())) {
    SmallVector<StringRef> cells;
    line.split(cells, ',');
    double loss, speed, validation;
    if (cells.size() != 6 || cells[0].getAsInteger(10, run.lastStep) ||
        cells[1].getAsDouble(loss) || cells[4].getAsDouble(speed))
      return (path + ":" + Twine(index + 2) + ": '" + line + "' is not a line of a log").str();
    if (run.steps++ == 0)
      run.firstLoss = loss;
    run.lastLoss = loss;
    run.speeds.push_back(speed);
    if (!cells[5].empty() && !cells[5].getAsDouble(validation)) {
      run.lastValidation = validation;
      if (!run.firstValidation)
        run.firstValidation = validation;
    }
  }
  return {};
}

static void printRun(Run run) {
  if (!run.steps) {
    outs() << "log            empty\n";
    return;
  }
  outs() << formatv("steps          {0}, up to step {1}\n", grouped(run.steps),
                    grouped(run.lastStep));
  outs() << formatv("loss           {0:F4} -> {1:F4}\n", run.firstLoss, run.lastLoss);
  if (run.lastValidation)
    outs() << formatv("validation     {0:F4} -> {1:F4}\n", *run.firstValidation,
                      *run.lastValidation);
  sort(run.speeds);
  outs() << formatv("speed          {0} tokens/s (median of the steps)\n",
                    grouped(int64_t(run.speeds[run.speeds.size() / 2])));
}

static void printCollectives(const json::Object &manifest) {
  int64_t calls = 0, bytes = 0;
  if (const json::Array *collectives = manifest.getArray("collectives"))
    for (const json::Value &value : *collectives)
      if (const json::Object *collective = value.getAsObject())
        if (collective->getString("function") == "train_step") {
          calls += collective->getInteger("calls").value_or(0);
          bytes += collective->getInteger("bytes").value_or(0);
        }
  outs() << formatv("collectives    {0} per step and rank, {1} bytes\n", calls, grouped(bytes));
}

int partita::tool::reportMain(Arguments arguments) {
  std::string folder, log;
  OptionSet options("report", "DIR [--log FILE.csv]",
                    "A summary of a compiled program and of a run's log.");
  options.positional("DIR", folder, "the folder that 'partita compile -o DIR' wrote");
  options.group("Input");
  options.text("log", "FILE.csv", log, "what 'partita run --log FILE.csv' wrote");
  if (std::optional<int> done = options.parse(arguments))
    return *done;
  std::string problem;
  std::optional<json::Object> manifest =
      readManifest(folder, problem, {"program", "ranks", "target", "mesh", "memory"});
  if (!manifest)
    return fail("report", problem);
  Run run;
  if (!log.empty())
    if (problem = readLog(log, run); !problem.empty())
      return fail("report", problem);
  outs() << "program        " << describeProgram(*manifest) << '\n';
  outs() << "model          " << manifest->getString("model").value_or("unknown") << '\n';
  outs() << "objective      " << manifest->getString("objective").value_or("unknown") << '\n';
  if (const json::Array *parameters = manifest->getArray("parameters"))
    outs() << "parameters     " << parameters->size() << " tensors\n";
  printCollectives(*manifest);
  outs() << "memory         " << describeMemory(*manifest) << '\n';
  if (!log.empty())
    printRun(run);
  return 0;
}
