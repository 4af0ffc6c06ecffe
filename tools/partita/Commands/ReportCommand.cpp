//===- ReportCommand.cpp - partita report -----------------------------------------------------===//
//
// Summarizes a program and, with a log, a run on one screen or as one HTML page.
//
//===------------------------------------------------------------------------------------------------===//

#include "dialects/Train/Train.h"
#include "partita/Analysis/Flops.h"
#include "runtime/include/partita_rt/scale_text.h"
#include "tools/partita/Program.h"
#include "tools/partita/Report/HtmlReport.h"
#include "tools/partita/Session.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <tuple>

using namespace llvm;
using namespace partita::tool;

static void printRun(const RunLog &run, StringRef unit) {
  if (run.rows.empty()) {
    outs() << "log            empty\n";
    return;
  }
  auto cell = [](const std::vector<std::optional<double>> &row, size_t column) {
    return row[column].value_or(0);
  };
  outs() << formatv("steps          {0}, up to step {1}\n", grouped(int64_t(run.rows.size())),
                    grouped(int64_t(cell(run.rows.back(), 0))));
  outs() << formatv("loss           {0:F4} -> {1:F4}\n", cell(run.rows.front(), 1),
                    cell(run.rows.back(), 1));
  /// Returns the column's numbers, in the order of the steps.
  auto numbers = [&](StringRef column) {
    std::vector<double> result;
    for (std::optional<double> each : run.column(column))
      if (each && std::isfinite(*each))
        result.push_back(*each);
    return result;
  };
  if (std::vector<double> losses = numbers("validation_loss"); !losses.empty())
    outs() << formatv("validation     {0:F4} -> {1:F4}\n", losses.front(), losses.back());
  auto median = [](std::vector<double> values) {
    sort(values);
    return values[values.size() / 2];
  };
  if (std::vector<double> speeds = numbers("tokens_per_second"); !speeds.empty())
    outs() << formatv("speed          {0} {1}/s (median of the steps)\n",
                      grouped(int64_t(median(speeds))), unit);
  if (std::vector<double> speeds = numbers("model_flops_per_second"); !speeds.empty())
    outs() << formatv("               {0:e3} model FLOP/s: {1}\n", median(speeds),
                      partita::kModelFlopsFormula);
  if (std::vector<double> scales = numbers("loss_scale"); !scales.empty())
    outs() << "loss scale     " << partita_rt::scaleText(scales.front()) << " -> "
           << partita_rt::scaleText(scales.back()) << "\n";
  if (std::vector<double> skipped = numbers("skipped_steps");
      !skipped.empty() && skipped.back() > 0)
    outs() << "skipped        " << format("%.0f", skipped.back())
           << (skipped.back() == 1 ? " step\n" : " steps\n");
}

namespace {
/// What a rank of one stage exchanges in a training step.
struct Exchange {
  int64_t calls = 0, bytes = 0, messages = 0, sent = 0;
  bool operator==(const Exchange &other) const {
    return std::tie(calls, bytes, messages, sent) ==
           std::tie(other.calls, other.bytes, other.messages, other.sent);
  }
};
} // namespace

/// Calls `visit` for the entries of a list that are about the training step.
static void forTrainStep(const json::Array *list,
                         llvm::function_ref<void(const json::Object &)> visit) {
  for (const json::Value &value : list ? *list : json::Array())
    if (const json::Object *entry = value.getAsObject())
      if (entry->getString("function") ==
          partita::train::nameOf(partita::train::EntryPoint::TrainStep))
        visit(*entry);
}

/// Prints a line for consecutive stages that exchange the same.
static void printCollectives(const json::Object &manifest) {
  const json::Array *stages = manifest.getArray("stages");
  std::vector<Exchange> ofStages(stages ? stages->size() : 1);
  forTrainStep(manifest.getArray("collectives"), [&](const json::Object &collective) {
    auto stage = static_cast<size_t>(collective.getInteger("stage").value_or(0));
    if (stage >= ofStages.size())
      return;
    ofStages[stage].calls += collective.getInteger("calls").value_or(0);
    ofStages[stage].bytes += collective.getInteger("bytes").value_or(0);
  });
  for (auto [number, exchange] : enumerate(ofStages))
    if (const json::Object *stage = stages ? (*stages)[number].getAsObject() : nullptr)
      forTrainStep(stage->getArray("messages"),
                   [&, &exchange = exchange](const json::Object &message) {
                     if (message.getInteger("from") != stage->getInteger("stage"))
                       return;
                     exchange.messages += message.getInteger("messages").value_or(0);
                     exchange.sent += message.getInteger("bytes").value_or(0);
                   });
  for (size_t begin = 0, end = 0; begin < ofStages.size(); begin = end) {
    const Exchange &same = ofStages[begin];
    while (end < ofStages.size() && ofStages[end] == same)
      ++end;
    std::string of;
    if (stages)
      of = end - begin == 1 ? formatv(" of stage {0}", begin).str()
                            : formatv(" of stages {0} to {1}", begin, end - 1).str();
    outs() << (begin == 0 ? "collectives    " : "               ")
           << formatv("{0} per step and rank{1}, {2} bytes", same.calls, of, grouped(same.bytes));
    if (stages)
      outs() << formatv("; sends {0} messages, {1} bytes", same.messages, grouped(same.sent));
    outs() << '\n';
  }
}

int partita::tool::reportMain(Arguments arguments) {
  std::string folder, log, html;
  OptionSet options("report", "DIR [--log FILE.csv] [--html FILE.html]",
                    "A summary of a compiled program and of a run's log.");
  options.positional("DIR", folder, "the folder that 'partita compile -o DIR' wrote");
  options.group("Input");
  options.text("log", "FILE.csv", log, "what 'partita run --log FILE.csv' wrote");
  options.group("Output");
  options.text(
      "html", "FILE.html", html,
      "one self-contained page: loss, rate and loss scale over the steps, time by kind of work, "
      "memory over the step, work by layer, collectives, the plan");
  if (std::optional<int> done = options.parse(arguments))
    return *done;
  std::string problem;
  std::optional<json::Object> manifest =
      readManifest(folder, problem, {"program", "ranks", "target", "mesh", "memory"});
  if (!manifest)
    return fail("report", problem);
  Expected<std::vector<partita::analysis::Collective>> collectives =
      partita::analysis::collectivesIn(manifest->getArray("explained"));
  if (!collectives)
    return fail("report", folder + ": " + toString(collectives.takeError()));
  RunLog run;
  if (!log.empty())
    if (problem = run.read(log); !problem.empty())
      return fail("report", problem);
  if (!html.empty()) {
    problem = checkNotInput(html, log, "--html");
    if (problem.empty())
      problem = checkNotProgram(html, folder, *manifest, "--html");
    if (problem.empty())
      problem = writeOutput(html, [&](raw_ostream &os) {
        writeHtmlReport(os, *manifest, std::move(*collectives), log.empty() ? nullptr : &run);
      });
    if (!problem.empty())
      return fail("report", problem);
    if (html == "-")
      return 0;
  }
  outs() << "program        " << describeProgram(*manifest) << '\n';
  outs() << "model          " << manifest->getString("model").value_or("unknown") << '\n';
  outs() << "objective      " << manifest->getString("objective").value_or("unknown") << '\n';
  if (const json::Array *parameters = manifest->getArray("parameters"))
    outs() << "parameters     " << parameters->size() << " tensors\n";
  printCollectives(*manifest);
  outs() << "memory         " << describeMemory(*manifest) << '\n';
  if (!log.empty())
    printRun(run, unitOf(*manifest));
  return 0;
}
