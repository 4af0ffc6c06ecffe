// Gradients of one step as a file, for --grads.

#ifndef PARTITA_RT_COMMON_GRADIENTS_H
#define PARTITA_RT_COMMON_GRADIENTS_H

#include "partita_rt/program.h"

#include <initializer_list>
#include <map>
#include <string>
#include <vector>

namespace partita_rt {

/// Collects what train_step passes to exposeGradient.
class GradientSink {
public:
  /// Keeps a copy of this rank's shard.
  void add(Rank &rank, int parameter, const void *gradient, DType dtype,
           std::initializer_list<int> flatOver);
  /// All ranks; throws Error when a trainable parameter's gradient was not exposed by a rank of a
  /// stage that holds it.
  void write(Rank &rank, const std::string &path) const;

private:
  struct Exposed {
    DType dtype;
    std::vector<int> flatOver; ///< mesh axes
    std::vector<char> bytes;
  };
  /// Type and flat axes of each parameter's gradient as one number, for ranks of other stages; 0 for
  /// those that this rank has not exposed.
  std::vector<int64_t> formats(const Program &program) const;
  /// The same for all parameters, from the ranks that hold them.
  std::vector<int64_t> formatsOfAll(Rank &rank) const;

  std::map<int, Exposed> exposed; ///< by parameter
};

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_GRADIENTS_H
