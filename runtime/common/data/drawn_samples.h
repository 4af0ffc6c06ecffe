// Made-up samples for --tune. Algorithms are compared on what a step computes on: with equal tokens
// everywhere, rows of activations would be equal and the GPU would take less power, and so run at a
// higher clock, than it does in training.

#ifndef PARTITA_RT_COMMON_DATA_DRAWN_SAMPLES_H
#define PARTITA_RT_COMMON_DATA_DRAWN_SAMPLES_H

#include "common/data/samples.h"

namespace partita_rt {

/// Samples drawn at random, the same in every run and on every rank: tokens and labels below their
/// vocabulary, standard normal numbers, true or false. Integers without a vocabulary are 0, which is
/// within any bounds that the program checks.
class DrawnSamples : public Samples {
public:
  int64_t count() const override;
  std::string text() const override { return "samples are drawn"; }
  std::string identity() const override { return "drawn"; }
  bool provides(const Input &input) const override;
  void read(const Input &input, int64_t sample, int64_t first, int64_t n, void *out) const override;
};

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_DATA_DRAWN_SAMPLES_H
