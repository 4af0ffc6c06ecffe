// The loss scale of float16 training, and its update after a step, as in DeepSpeed's scalers.
//
// The loss is multiplied by the scale so that small gradients do not vanish in float16; a scale that
// is too large makes them infinite. The step's gradients are divided by the scale of *their* backward
// pass, before the update here; a step with an overflow changes only this state.
//
// Dynamic:
//   overflow  the first `hysteresis - 1` only skip the step; each further one also halves the scale,
//             down to the minimum; one at the minimum ends the run. The count restarts with the next
//             growth or, if `consecutive`, with any clean step.
//   clean     the scale doubles with every `window`-th consecutive clean step, counted from the second
//             one after the last overflow (so the first growth, also of a fresh run, comes with clean
//             step window + 1). It has no upper bound.
// Static: the scale never changes; a step with an overflow is still skipped.
//
// Plain structs and one pure function, so that device code may hold and evaluate them.

#ifndef PARTITA_RT_LOSS_SCALER_H
#define PARTITA_RT_LOSS_SCALER_H

#include "lr_schedule.h"

namespace partita_rt {

struct LossScalerOptions {
  bool dynamic = true;
  double initialScale = 65536; ///< or the static scale
  int64_t window = 1000;       ///< clean steps between growths, at least 1
  int64_t hysteresis = 2;      ///< overflows until the scale is halved, at least 1
  bool consecutive = false;    ///< only overflows in a row count for the hysteresis
  double minimum = 1;          ///< above 0
};

struct LossScalerState {
  double scale = 65536;
  int64_t step = 0;          ///< updates of this state so far, including skipped steps
  int64_t lastOverflow = -1; ///< the step of the last overflow
  int64_t hysteresis = 2;    ///< overflows left until the scale is halved; at 1 the next one does
};

inline LossScalerState firstState(const LossScalerOptions &options) {
  return {options.initialScale, 0, -1, options.hysteresis};
}

struct LossScalerResult {
  LossScalerState state;
  bool stop = false; ///< an overflow occurred at the minimum; the state is unchanged
};

/// Returns the state after a step. `overflow`: on some rank of the step, a gradient was not finite.
PARTITA_RT_HOST_DEVICE inline LossScalerResult
updateLossScale(LossScalerState state, const LossScalerOptions &options, bool overflow) {
  if (!options.dynamic) {
    ++state.step;
    return {state, false};
  }
  if (overflow) {
    if (options.hysteresis > 1 && state.hysteresis > 1) {
      --state.hysteresis;
    } else {
      if (state.scale == options.minimum)
        return {state, true};
      double half = state.scale / 2;
      state.scale = half > options.minimum ? half : options.minimum;
    }
    state.lastOverflow = state.step;
  } else {
    if (options.consecutive)
      state.hysteresis = options.hysteresis;
    int64_t clean = state.step - state.lastOverflow - 1; // before this one
    if (clean > 0 && clean % options.window == 0) {
      state.hysteresis = options.hysteresis;
      state.scale *= 2;
    }
  }
  ++state.step;
  return {state, false};
}

} // namespace partita_rt

#endif // PARTITA_RT_LOSS_SCALER_H
