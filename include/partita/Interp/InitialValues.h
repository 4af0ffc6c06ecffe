//===- InitialValues.h - parameters' initial values ---------------------------------*- C++ -*-===//

#ifndef PARTITA_INTERP_INITIALVALUES_H
#define PARTITA_INTERP_INITIALVALUES_H

#include "partita/Interp/Tensor.h"

namespace mlir {
class Operation;
}

namespace partita::interp {

class Interpreter;

struct InitialValues {
  enum class From {
    /// Where `initial` says; a parameter without one is an error.
    File,
    /// `fill` with the seed: the values of the runtime's `--init seed:N`, rounded to float32.
    Seed,
    /// All parameters random, biases and norms too: a constant c becomes c + 0.1 x normal, a normal
    /// keeps its deviation; nothing is zero by accident. For tests.
    Perturbed
  };
  From from = From::File;
  uint64_t seed = 1;
  /// The folder that the file names of `initial` are relative to.
  std::string folder = ".";
};

/// Returns the full initial value of a parameter or state; an error is located at it.
mlir::FailureOr<Tensor> initialValue(mlir::Operation *symbol, const InitialValues &values);

/// Calls @init of the interpreter's module. Without @init, every parameter gets the initial value
/// of its symbol.
mlir::LogicalResult initialize(Interpreter &interpreter, const InitialValues &values);

} // namespace partita::interp

#endif // PARTITA_INTERP_INITIALVALUES_H
