// Launch functions common to all targets (launch.h).

#include "common/mesh/launch.h"
#include "common/run_options.h"
#include "partita_rt/timeout.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>

namespace partita_rt {

std::vector<int64_t> inputOffsets(const Program &program) {
  std::vector<int64_t> offsets{0};
  for (const Input &input : program.inputs) {
    int64_t bytes = program.accumulate * input.localShape.elements() * sizeOf(input.dtype);
    offsets.push_back(offsets.back() + (bytes + 63) / 64 * 64);
  }
  return offsets;
}

int64_t inputBytes(const Program &program) { return inputOffsets(program).back(); }

int64_t arenaBytes(const Stage &stage, const RunOptions *options) {
  bool forward = options && !options->forward.empty();
  return std::max(stage.arenaBytes, forward ? stage.forwardArenaBytes : 0);
}

std::string World::agree(const std::string &error) {
  return firstError(gather(error, "the end of the set-up"));
}

std::string firstError(const std::vector<std::string> &errors) {
  for (const std::string &each : errors)
    if (!each.empty())
      return each;
  return "";
}

static std::string transport() {
  const char *text = std::getenv("PARTITA_RT_TRANSPORT");
  return text ? text : "";
}

/// Returns N of "KIND:N"; 0 if the text is something else.
static int numberAfter(const std::string &kind, const std::string &text) {
  std::string number = text.rfind(kind, 0) == 0 ? text.substr(kind.size()) : "";
  bool digits = !number.empty() && number.size() < 6 &&
                number.find_first_not_of("0123456789") == std::string::npos;
  return digits ? std::atoi(number.c_str()) : 0;
}

std::optional<int> pretendedNode(int launched) {
  std::string text = transport();
  if (text == "messages")
    return launched;
  if (int ranks = numberAfter("nodes:", text))
    return launched / ranks;
  if (int nodes = numberAfter("dealt:", text))
    return launched % nodes;
  return std::nullopt;
}

void checkTransport() {
  std::string text = transport();
  if (!text.empty() && text != "window" && !pretendedNode(0))
    fail("PARTITA_RT_TRANSPORT=%.40s: known are 'window' (shared memory within a node, the "
         "default), 'messages', 'nodes:N' with N ranks, and 'dealt:N' with ranks dealt to N",
         text.c_str());
}

double secondsFrom(const std::string &what, const std::string &text) {
  std::optional<double> seconds = secondsIn(text);
  if (!seconds)
    fail("%s%.40s: a number of seconds above 0 and below 1e9 is expected", what.c_str(),
         text.c_str());
  return *seconds;
}

static std::atomic<double> givenTimeout{0}; ///< --timeout's; 0: not given

void setTimeoutSeconds(double seconds) { givenTimeout = seconds; }

double timeoutSeconds() {
  if (double seconds = givenTimeout.load(std::memory_order_relaxed); seconds > 0)
    return seconds;
  std::string text = timeoutInEnvironment();
  return text.empty() ? kTimeoutSeconds : secondsFrom(std::string(kTimeoutVariable) + "=", text);
}

} // namespace partita_rt
