// The loss scaler: DeepSpeed's traces, and ten thousand runs against a stateless model.

#include "goldens.h"
#include "partita_rt/loss_scaler.h"

#include <algorithm>
#include <random>

namespace partita_rt {
namespace {

TEST(LossScaler, IsDeepSpeeds) {
  for (const Json &golden : goldens("scalers")) {
    LossScalerOptions options;
    options.initialScale = double(golden.find("initial")->integer);
    options.window = 4;
    options.consecutive = golden.find("consecutive")->integer;
    LossScalerState state = firstState(options);
    std::string pattern = golden.find("pattern")->string;
    const std::vector<Json> &states = golden.find("states")->items;
    ASSERT_FALSE(states.empty());
    for (size_t i = 0; i < states.size(); ++i) {
      LossScalerResult result = updateLossScale(state, options, pattern[i] == 'x');
      bool stops = states[i].items[0].string == "stop";
      ASSERT_EQ(result.stop, stops) << pattern << " " << i;
      if (stops) {
        EXPECT_EQ(result.state.scale, state.scale);
        break;
      }
      state = result.state;
      EXPECT_EQ(state.scale, numberOf(states[i].items[0])) << pattern << " " << i;
      EXPECT_EQ(state.hysteresis, numberOf(states[i].items[1])) << pattern << " " << i;
    }
  }
}

/// Recomputes the scale after a history of steps ('x': overflow, '.': clean) from all of it. The
/// history consists of runs of clean steps between overflows. A run doubles the scale once for each
/// full window after its first step. An overflow halves it once the allowed overflows are used up,
/// which are counted from the last growth (or, if consecutive, from the end of the clean run).
/// Returns whether training stops.
struct Recomputed {
  double scale;
  bool stops;
};
Recomputed recompute(const std::string &history, const LossScalerOptions &options) {
  double scale = options.initialScale;
  int64_t used = 0; // overflows since the last reset of the count
  size_t at = 0;
  while (at < history.size()) {
    size_t rowEnd = std::min(history.find('x', at), history.size());
    int64_t row = int64_t(rowEnd - at);
    int64_t growths = row > 0 ? (row - 1) / options.window : 0;
    for (int64_t g = 0; g < growths; ++g)
      scale += scale;
    if (growths > 0 || (options.consecutive && row > 0))
      used = 0;
    if (rowEnd == history.size())
      break;
    if (++used >= options.hysteresis) {
      if (scale == options.minimum)
        return {scale, true};
      scale = std::max(scale * 0.5, options.minimum);
    }
    at = rowEnd + 1;
  }
  return {scale, false};
}

TEST(LossScaler, IsWhatItsWholeHistorySays) {
  std::mt19937 random(12);
  auto below = [&](int64_t n) { return int64_t(random() % uint64_t(n)); };
  int stopped = 0, grown = 0;
  for (int run = 0; run < 10000; ++run) {
    LossScalerOptions options;
    options.window = 1 + below(8);
    options.hysteresis = 1 + below(4);
    options.consecutive = below(2);
    options.minimum = std::ldexp(below(3) ? 1.0 : 3.0, int(below(6)) - 2);
    options.initialScale = std::max(std::ldexp(1.0, int(below(20))), options.minimum);
    int64_t oneOf = 2 + below(12); // the rate of overflows is one in this many
    LossScalerState state = firstState(options);
    std::string history;
    for (int step = 0; step < 60; ++step) {
      bool overflow = below(oneOf) == 0;
      history += overflow ? 'x' : '.';
      LossScalerResult result = updateLossScale(state, options, overflow);
      Recomputed expected = recompute(history, options);
      ASSERT_EQ(result.stop, expected.stops) << run << " " << history;
      ASSERT_EQ(result.state.scale, expected.scale) << run << " " << history;
      if (result.stop) {
        ++stopped;
        break;
      }
      grown += result.state.scale > state.scale;
      state = result.state;
      ASSERT_EQ(state.step, step + 1);
    }
  }
  EXPECT_GT(stopped, 1000);
  EXPECT_GT(grown, 10000);
}

TEST(LossScaler, AStaticScaleStays) {
  LossScalerOptions options;
  options.dynamic = false;
  options.initialScale = options.minimum = 128;
  LossScalerState state = firstState(options);
  for (bool overflow : {true, true, true, false, false}) {
    LossScalerResult result = updateLossScale(state, options, overflow);
    EXPECT_FALSE(result.stop);
    state = result.state;
  }
  EXPECT_EQ(state.scale, 128);
  EXPECT_EQ(state.step, 5);
}

} // namespace
} // namespace partita_rt
