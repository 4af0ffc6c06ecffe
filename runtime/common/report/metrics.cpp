// Writes progress and logs (metrics.h).

#include "common/report/metrics.h"

#include "common/grouped.h"
#include "common/temporary_file.h"
#include "partita_rt/abandoned.h"
#include "partita_rt/launchers.h"
#include "partita_rt/owned_paths.h"
#include "partita_rt/printable.h"
#include "partita_rt/scale_text.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace partita_rt {

//===-- Formatting --------------------------------------------------------------------------===//

std::string duration(double seconds) {
  if (seconds < 59.95)
    return format("%.1f s", seconds);
  int64_t rounded = int64_t(std::llround(seconds));
  if (rounded < 3600)
    return std::to_string(rounded / 60) + " min " + format("%02.0f s", double(rounded % 60));
  return std::to_string(rounded / 3600) + " h " + format("%02.0f min", double(rounded % 3600 / 60));
}

std::string breakdownText(const WorkTimes &times, int64_t steps) {
  std::string text;
  double all = 0;
  for (double each : times)
    all += each;
  for (int kind = 0; kind < kWorkKinds; ++kind)
    if (double each = times[size_t(kind)]; each > 0)
      text += (text.empty() ? "" : ", ") + std::string(nameOf(Work(kind))) + " " +
              format("%.3g ms", 1e3 * each / double(std::max<int64_t>(steps, 1))) +
              format(" (%.0f %%)", 100 * each / all);
  return text;
}

std::string flopsText(double flops, const char *unit) {
  static constexpr const char *kPrefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  size_t prefix = 0;
  for (; flops >= 999.5 && prefix + 1 < std::size(kPrefixes); ++prefix)
    flops /= 1000;
  return format("%.3g ", flops) + kPrefixes[prefix] + unit;
}

//===-- Log ---------------------------------------------------------------------------------===//

/// Returns the log's columns, in order: older readers know the first six.
static std::string logHeader(LogColumns which) {
  std::string header = "step,loss,gradient_norm,learning_rate,tokens_per_second,validation_loss,"
                       "loss_scale,skipped_steps,model_flops_per_second,first_nonfinite";
  if (which.betas)
    header += ",beta1,beta2";
  for (int kind = 0; which.times && kind < kWorkKinds; ++kind)
    header += std::string(",") + nameOf(Work(kind)) + "_seconds";
  if (which.stragglers)
    header += ",slowest_rank,slowest_seconds,median_seconds";
  for (int kind = 0; which.stragglers && kind < kWorkKinds; ++kind)
    if (Stragglers::isOwn(Work(kind))) {
      std::string name = std::string(",slowest_") + nameOf(Work(kind));
      header += name + "_rank" + name + "_lead_seconds";
    }
  return header;
}

/// Counts the columns. A comma in a quoted cell belongs to the cell.
static size_t columnsOf(const std::string &line) {
  size_t columns = 1;
  bool quoted = false;
  for (char c : line) {
    quoted ^= c == '"';
    columns += c == ',' && !quoted;
  }
  return columns;
}

/// Returns a name as a cell: one line, quoted if necessary.
static std::string textCell(std::string name) {
  for (char &c : name)
    c = uint8_t(c) < ' ' ? ' ' : c;
  if (name.find_first_of(",\"") == std::string::npos)
    return name;
  std::string cell;
  for (char c : name)
    cell += c == '"' ? "\"\"" : std::string(1, c);
  return "\"" + cell + "\"";
}

StepLog::StepLog(const std::string &path, int64_t resumedAt, LogColumns which)
    : path(path), which(which) {
  claim();
  std::string header = logHeader(which);
  std::vector<std::string> kept;
  struct stat status;
  // A device such as /dev/full has no lines to go on from, and no end.
  if (resumedAt > 0 && fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) {
    std::ifstream old(path);
    std::string line;
    for (bool header = true; std::getline(old, line) && !old.eof(); header = false)
      if (header || std::atoll(line.c_str()) <= resumedAt)
        kept.push_back(line);
  }
  if (kept.empty())
    kept.push_back(header);
  std::string &known = kept.front();
  auto beginsWith = [](const std::string &longer, const std::string &shorter) {
    return (longer + ",").compare(0, shorter.size() + 1, shorter + ",") == 0;
  };
  if (!beginsWith(header, known) && !beginsWith(known, header))
    fail("--log: %s is not the log of the run that goes on: its columns are '%.80s'", path.c_str(),
         known.c_str());
  columns = std::max(columnsOf(header), columnsOf(known));
  known = columnsOf(known) < columns ? header : known;
  for (std::string &line : kept)
    line.append(columns - std::min(columns, columnsOf(line)), ',');
  begin(kept, resumedAt > 0);
}

/// Opens the file, and locks it if it is a regular one: two runs must not write to one log.
void StepLog::claim() {
  for (;;) {
    int opened = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (opened < 0)
      fail("--log: cannot write %s: %s", path.c_str(), std::strerror(errno));
    if (descriptor >= 0)
      close(descriptor);
    descriptor = opened;
    struct stat status, named;
    if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode))
      return;
    if (!tryLock(descriptor)) {
      close(descriptor);
      fail("%s", ownedByAnotherText(kOwnedLog, path).c_str());
    }
    // The other run may have replaced the file in the meantime.
    if (stat(path.c_str(), &named) == 0 && named.st_dev == status.st_dev &&
        named.st_ino == status.st_ino)
      return;
  }
}

/// Does a file begin with this text?
static bool beginsWith(const std::string &path, const std::string &text) {
  std::ifstream file(path);
  std::string begin(text.size(), 0);
  return file.read(begin.data(), std::streamsize(begin.size())) && begin == text;
}

/// Starts the file with these lines. A log that continues is replaced atomically, so a run that is
/// killed meanwhile loses none of it; where there is no room for another file, it is cut after them.
void StepLog::begin(const std::vector<std::string> &lines, bool goesOn) {
  std::string text;
  for (const std::string &line : lines)
    text += line + "\n";
  struct stat status;
  bool isRegular = lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode), isThere = false;
  off_t kept = 0;
  removeAbandonedFiles(path);
  if (goesOn && isRegular) {
    isThere = true;
    bool isReplaced = false;
    try {
      TemporaryFile file(path);
      file.write(text.data(), int64_t(text.size()));
      file.commit();
      isReplaced = true;
    } catch (const Error &) {
      if (!beginsWith(path, text))
        throw;
      kept = off_t(text.size());
    }
    if (isReplaced) {
      claim();
      isRegular = false; // nothing is left to cut
    }
  }
  if (isRegular && ftruncate(descriptor, kept) != 0)
    fail("--log: cannot write %s: %s", path.c_str(), std::strerror(errno));
  file.emplace(descriptor, "--log: " + path);
  if (!isThere)
    file->add(text);
}

void StepLog::add(const StepLine &line) {
  // Nine digits identify a float: equal lines mean equal bits. A cell is empty if the program does
  // not compute the value.
  std::string text = std::to_string(line.step) + "," + format("%.9g", double(line.report.loss));
  auto cell = [&](bool known, const char *pattern, double value) {
    text += "," + (known ? format(pattern, value) : std::string());
  };
  cell(line.report.gradientNorm >= 0, "%.9g", double(line.report.gradientNorm));
  cell(true, "%.9g", double(line.learningRate));
  cell(true, "%.0f", line.unitsPerSecond);
  cell(line.validationLoss.has_value(), "%.9g", line.validationLoss.value_or(0));
  text += "," + (line.report.lossScale > 0 ? scaleText(double(line.report.lossScale)) : "");
  cell(true, "%.0f", double(line.report.skippedSteps));
  cell(line.flopsPerSecond > 0, "%.0f", line.flopsPerSecond);
  text += "," + textCell(line.nonfinite);
  for (int i = 0; which.betas && i < 2; ++i)
    cell(line.betas.has_value(), "%.9g", line.betas ? (*line.betas)[size_t(i)] : 0);
  for (int kind = 0; line.times && kind < kWorkKinds; ++kind)
    cell(true, "%.6f", (*line.times)[size_t(kind)]);
  if (which.stragglers) {
    bool known = line.slowest.has_value();
    Stragglers::Found found = line.slowest.value_or(Stragglers::Found{});
    cell(known, "%.0f", found.all.rank);
    cell(known, "%.6f", found.all.seconds);
    cell(known, "%.6f", found.all.median);
    for (int kind = 0; kind < kWorkKinds; ++kind)
      if (Stragglers::isOwn(Work(kind))) {
        const Stragglers::Slowest &its = found.byKind[size_t(kind)];
        cell(known, "%.0f", its.rank);
        cell(known, "%.6f", its.seconds - its.median);
      }
  }
  text.append(columns - std::min(columns, columnsOf(text)), ',');
  file->add(text + "\n");
}

//===-- TensorBoard -------------------------------------------------------------------------===//

std::string tensorboardFolder(const Program &program, const RunOptions &options) {
  return options.tensorboard + "/" + (options.jobName.empty() ? program.name : options.jobName);
}

void TensorBoard::add(const StepLine &line) {
  std::vector<std::pair<std::string, double>> values;
  auto add = [&](const char *name, double value) {
    values.push_back({std::string("Train/Samples/") + name, value});
  };
  add("train_loss", double(line.report.loss));
  add("lr", double(line.learningRate));
  if (line.betas) {
    add("beta1", (*line.betas)[0]);
    add("beta2", (*line.betas)[1]);
  }
  if (line.report.lossScale > 0) {
    add("loss_scale", double(line.report.lossScale));
    add("skipped_steps", double(line.report.skippedSteps));
  }
  if (line.report.gradientNorm >= 0)
    add("gradient_norm", double(line.report.gradientNorm));
  add((std::string(line.unit) + "_per_second").c_str(), line.unitsPerSecond);
  if (line.flopsPerSecond > 0)
    add("model_flops_per_second", line.flopsPerSecond);
  if (line.validationLoss)
    add("validation_loss", *line.validationLoss);
  for (int kind = 0; line.times && kind < kWorkKinds; ++kind) {
    // DeepSpeed's "step" is the optimizer's part of a step.
    std::string name = Work(kind) == Work::Update ? "step" : nameOf(Work(kind));
    add(("elapsed_time_ms_" + name).c_str(), 1e3 * (*line.times)[size_t(kind)]);
  }
  file.add(line.samples, values);
  if (!line.nonfinite.empty())
    file.addText(line.samples, "Train/Samples/first_nonfinite", line.nonfinite);
}

//===-- Progress ----------------------------------------------------------------------------===//

Progress::Progress(const RunOptions &options, int64_t firstStep,
                   std::unique_ptr<Stragglers> stragglers)
    : stragglers(std::move(stragglers)), terminal(isatty(STDOUT_FILENO) && !isBelowMpirun()),
      first(firstStep), last(options.steps.value_or(0)), every(options.printEvery),
      begin(std::chrono::steady_clock::now()), drawn(begin) {
  if (every == 0)
    every = std::max<int64_t>(1, (last - first + 10) / 10);
}

std::string Progress::text(const StepLine &line) const {
  std::string out = "step " + std::to_string(line.step) + "/" + std::to_string(last) + "  loss " +
                    format("%.4f", double(line.report.loss));
  if (line.report.gradientNorm >= 0)
    out += "  norm " + format("%.3f", double(line.report.gradientNorm));
  if (line.betas)
    out += "  beta1 " + format("%.4g", (*line.betas)[0]);
  if (line.report.lossScale > 0)
    out += "  scale " + scaleText(double(line.report.lossScale));
  if (line.report.skippedSteps > 0)
    out += "  skipped " + grouped(line.report.skippedSteps);
  if (!skippedFor.empty())
    out += " (not finite: " + printable(skippedFor) + ")";
  if (line.validationLoss)
    out += "  validation " + format("%.4f", *line.validationLoss);
  out += "  " + grouped(int64_t(line.unitsPerSecond)) + " " + line.unit + "/s";
  if (line.step < last) {
    std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    double perStep = spent.count() / double(line.step - first + 1);
    out += "  " + duration(perStep * double(last - line.step)) + " left";
  }
  return out;
}

void Progress::step(const StepLine &line) {
  auto now = std::chrono::steady_clock::now();
  bool stays = line.step % every == 0 || line.step == first || line.step == last ||
               line.validationLoss.has_value();
  for (size_t kind = 0; line.times && kind < sinceLine.size(); ++kind)
    sinceLine[kind] += (*line.times)[kind];
  ++stepsSinceLine;
  if (!line.nonfinite.empty())
    skippedFor = line.nonfinite;
  if (stays) {
    std::printf("%s%s\n", terminal ? "\r\033[K" : "", text(line).c_str());
    if (line.times)
      std::printf("  %s\n", breakdownText(sinceLine, stepsSinceLine).c_str());
    if (stragglers && stragglers->look())
      std::printf("  %s\n", stragglers->text().c_str());
    sinceLine = {};
    stepsSinceLine = 0;
    skippedFor.clear();
    std::fflush(stdout);
  } else if (terminal && now - drawn > std::chrono::milliseconds(100)) {
    std::printf("\r\033[K%s", text(line).c_str());
    std::fflush(stdout);
    drawn = now;
  }
}

void Progress::finish() {
  if (terminal)
    std::printf("\r\033[K");
  std::fflush(stdout);
}

} // namespace partita_rt
