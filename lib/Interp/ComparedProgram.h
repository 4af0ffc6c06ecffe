//===- ComparedProgram.h - one of the two programs that verify compares -------------*- C++ -*-===//

#ifndef PARTITA_LIB_INTERP_COMPAREDPROGRAM_H
#define PARTITA_LIB_INTERP_COMPAREDPROGRAM_H

#include "dialects/Train/Train.h"
#include "partita/Interp/Stages.h"
#include "partita/Interp/Verify.h"

namespace partita::interp {

/// Full values by name.
using Named = std::map<std::string, Tensor>;

/// One program, perhaps of several pipeline stages, and its values by name. What several stages have must be the same on each, and is there once.
class ComparedProgram {
public:
  static mlir::FailureOr<ComparedProgram> of(mlir::ModuleOp module, const VerifyOptions &options);

  mlir::ModuleOp module() { return theModule; }
  llvm::MutableArrayRef<Interpreter> stages() { return program.stages; }
  /// Of a program that is not cut into stages.
  Interpreter &interpreter() { return program.stages.front(); }

  /// The number of the update that the next call makes, from 1.
  void setStep(int64_t step);
  mlir::LogicalResult initialize(const InitialValues &values);

  /// The first stage's: all have the same arguments.
  mlir::func::FuncOp function(train::EntryPoint entry);
  bool has(train::EntryPoint entry) { return static_cast<bool>(function(entry)); }
  /// Returns the results of all stages: "train_step#0".
  mlir::FailureOr<Named> call(train::EntryPoint entry, llvm::ArrayRef<Tensor> inputs);

  /// Of the last call, by the parameters' names.
  mlir::FailureOr<Named> gradients();
  mlir::FailureOr<Named> parameters();
  /// States that are no masters.
  mlir::FailureOr<Named> states();
  /// By their parameters' names.
  mlir::FailureOr<Named> masters();

private:
  ComparedProgram(StageInterpreter program, mlir::ModuleOp module)
      : program(std::move(program)), theModule(module) {}

  template <typename Op>
  mlir::FailureOr<Named> collect(llvm::function_ref<llvm::StringRef(Op)> nameOf);

  StageInterpreter program;
  mlir::ModuleOp theModule;
};

} // namespace partita::interp

#endif // PARTITA_LIB_INTERP_COMPAREDPROGRAM_H
