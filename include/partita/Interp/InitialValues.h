//===- InitialValues.h - the values that parameters start with ----------------------*- C++ -*-===//

#ifndef PARTITA_INTERP_INITIALVALUES_H
#define PARTITA_INTERP_INITIALVALUES_H

#include "partita/Interp/Interpreter.h"

namespace partita::train {
class ParameterOp;
}

namespace partita::interp {

struct InitialValues {
  enum class From {
    /// Where `initial` says; a parameter without one is an error.
    File,
    /// `fill` with the seed: what the runtime's `--init seed:N` gives, float32 included.
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

/// The whole value of a parameter; an error is located at it.
mlir::FailureOr<Tensor> initialValue(train::ParameterOp parameter, const InitialValues &values);

/// Sets every parameter of the interpreter's module.
mlir::LogicalResult initialize(Interpreter &interpreter, const InitialValues &values);

} // namespace partita::interp

#endif // PARTITA_INTERP_INITIALVALUES_H
