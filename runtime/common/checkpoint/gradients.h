// What reads the gradients that a step exposes: a file of them, for --grads.

#ifndef PARTITA_RT_COMMON_CHECKPOINT_GRADIENTS_H
#define PARTITA_RT_COMMON_CHECKPOINT_GRADIENTS_H

#include "partita_rt/program.h"

#include <initializer_list>
#include <map>
#include <string>
#include <vector>

namespace partita_rt {

/// Receives what train_step passes to exposeGradient.
class GradientSink {
public:
  virtual ~GradientSink() = default;
  virtual void add(Rank &rank, int parameter, const void *gradient, DType dtype,
                   std::initializer_list<int> flatOver) = 0;
};

class GradientFile : public GradientSink {
public:
  /// Keeps a copy of this rank's shard.
  void add(Rank &rank, int parameter, const void *gradient, DType dtype,
           std::initializer_list<int> flatOver) override;
  /// Writes the gradients. All ranks call it. Throws Error if a rank has not exposed the gradient
  /// of a trainable parameter that its stage holds.
  void write(Rank &rank, const std::string &path) const;

private:
  struct Exposed {
    DType dtype;
    std::vector<int> flatOver; ///< mesh axes
    std::vector<char> bytes;
  };
  /// Encodes type and flat axes of each parameter's gradient as one number, for ranks of other
  /// stages; 0 for gradients that this rank has not exposed.
  std::vector<int64_t> formats(const Program &program) const;
  /// Returns the formats of all parameters' gradients, from the ranks that hold them.
  std::vector<int64_t> formatsOfAll(Rank &rank) const;

  std::map<int, Exposed> exposed; ///< by parameter
};

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_CHECKPOINT_GRADIENTS_H
