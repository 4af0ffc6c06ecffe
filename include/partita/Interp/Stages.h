//===- Stages.h - executes a program of pipeline stages -----------------------------*- C++ -*-===//
//
// A module of stage modules (dialect pipe): each stage is a program of its own, whose ranks run in
// lockstep; between stages there are only messages.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_INTERP_STAGES_H
#define PARTITA_INTERP_STAGES_H

#include "partita/Interp/Interpreter.h"
#include <vector>

namespace partita::interp {

class StageInterpreter {
public:
  /// Expects stages numbered 0 to n-1 with equal meshes; anything else is an error at the module.
  /// An uncut program is one stage.
  ///
  /// With blocking sends a stage waits at a send until its value is received (in a loop with an
  /// order, before the pass that sends runs again), without them never.
  static mlir::FailureOr<StageInterpreter> create(mlir::ModuleOp program, Options options,
                                                  bool blockingSends);
  /// Returns true if it is a module of stages.
  static bool isProgram(mlir::ModuleOp module);

  /// One interpreter per stage.
  std::vector<Interpreter> stages;

  /// Calls a function of every stage with a list of inputs for each, as Interpreter::call does, and
  /// returns the results of each. A deadlock is an error that says which stage waits for which.
  mlir::FailureOr<std::vector<llvm::SmallVector<Tensor>>>
  call(llvm::StringRef function, llvm::ArrayRef<llvm::SmallVector<Tensor>> inputs);

private:
  bool blockingSends = false, isCut = true;
};

} // namespace partita::interp

#endif // PARTITA_INTERP_STAGES_H
