// Progress and logs (metrics.h).

#include "common/metrics.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <unistd.h>
#include <vector>

namespace partita_rt {

//===-- Formatting --------------------------------------------------------------------------===//

static std::string format(const char *pattern, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), pattern, value);
  return text;
}

std::string grouped(int64_t value) {
  std::string text = std::to_string(value);
  for (int64_t i = int64_t(text.size()) - 3; i > (value < 0 ? 1 : 0); i -= 3)
    text.insert(size_t(i), ",");
  return text;
}

std::string duration(double seconds) {
  if (seconds < 59.95)
    return format("%.1f s", seconds);
  int64_t whole = int64_t(std::llround(seconds));
  if (whole < 3600)
    return std::to_string(whole / 60) + " min " + format("%02.0f s", double(whole % 60));
  return std::to_string(whole / 3600) + " h " + format("%02.0f min", double(whole % 3600 / 60));
}

//===-- Log ---------------------------------------------------------------------------------===//

StepLog::StepLog(const std::string &path, int64_t resumedAt) : path(path) {
  std::vector<std::string> kept;
  if (resumedAt > 0) {
    std::ifstream old(path);
    std::string line;
    for (bool header = true; std::getline(old, line); header = false)
      if (header || std::atoll(line.c_str()) <= resumedAt)
        kept.push_back(line);
  }
  file = std::fopen(path.c_str(), "w");
  if (!file)
    fail("--log: cannot write %s: %s", path.c_str(), std::strerror(errno));
  if (kept.empty())
    kept.push_back("step,loss,gradient_norm,learning_rate,tokens_per_second,validation_loss");
  for (const std::string &line : kept)
    std::fprintf(file, "%s\n", line.c_str());
  std::fflush(file);
}

StepLog::~StepLog() { std::fclose(file); }

void StepLog::add(const StepLine &line) {
  // Nine digits identify a float: equal lines are equal bits.
  std::fprintf(file, "%lld,%.9g,", (long long)line.step, double(line.loss));
  if (line.gradientNorm > 0) // a program that does not compute it has no number to show
    std::fprintf(file, "%.9g", double(line.gradientNorm));
  std::fprintf(file, ",%.9g,%.0f,", double(line.learningRate), line.unitsPerSecond);
  if (line.validationLoss)
    std::fprintf(file, "%.9g", *line.validationLoss);
  std::fprintf(file, "\n");
  if (std::fflush(file) != 0)
    fail("--log: cannot write %s: %s", path.c_str(), std::strerror(errno));
}

//===-- Progress ----------------------------------------------------------------------------===//

/// Open MPI gives its processes a terminal of their own whatever its own output is.
static bool underMpirun() { return std::getenv("OMPI_COMM_WORLD_SIZE"); }

Progress::Progress(const RunOptions &options, int64_t firstStep)
    : terminal(isatty(STDOUT_FILENO) && !underMpirun()), first(firstStep),
      last(options.steps.value_or(0)), every(options.printEvery),
      begin(std::chrono::steady_clock::now()), drawn(begin) {
  if (every == 0)
    every = std::max<int64_t>(1, (last - first + 10) / 10);
}

std::string Progress::text(const StepLine &line) const {
  std::string out = "step " + std::to_string(line.step) + "/" + std::to_string(last) + "  loss " +
                    format("%.4f", double(line.loss));
  if (line.gradientNorm > 0)
    out += "  norm " + format("%.3f", double(line.gradientNorm));
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
  if (stays) {
    std::printf("%s%s\n", terminal ? "\r\033[K" : "", text(line).c_str());
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
