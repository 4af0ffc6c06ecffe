//===- Interpreter.h - executes tensor programs on virtual ranks --------------------*- C++ -*-===//
//
// Any phase's IR before `rt` (dialects tx, train, par, zero, amp, offload, func), on as many virtual ranks as the
// module's mesh has, in double precision: slow, obvious, the oracle of all tests. The ranks go in
// lockstep, op by op; a collective sees all ranks' tensors and adds them in rank order.
//
// After every op the placements in its result types are held against what the ranks have: a value
// called invariant or replicated that differs between ranks is an error at that op. A program with
// a memory plan is executed in that memory as well: a value that is gone when it is needed is an
// error.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_INTERP_INTERPRETER_H
#define PARTITA_INTERP_INTERPRETER_H

#include "dialects/Par/Par.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "partita/Interp/InitialValues.h"
#include "partita/Interp/Tensor.h"
#include <map>
#include <string>

namespace partita::interp {

class Exchange;

struct Options {
  /// Do casts to f32, f16 and bf16, and all results of 16 bits, really round? Exact otherwise.
  bool roundCasts = false;
  /// What `train.learning_rate` yields.
  double learningRate = 1e-3;
  /// What `train.step_number` yields: the number of the update, from 1.
  int64_t stepNumber = 1;
  /// What `train.initial_value` yields for a parameter.
  InitialValues initialValues;
  /// What `train.random_key` depends on, with the number of the update.
  uint64_t seed = 1;
};

/// A parameter or state on all ranks, with the type that says who holds what.
struct Stored {
  mlir::Type type;
  RankTensors pieces;
};

class Interpreter {
public:
  /// Parameters need setParameter or initialize (InitialValues.h) before a function reads them;
  /// states start as their `value` says even without. The module must outlive the interpreter.
  explicit Interpreter(mlir::ModuleOp module, Options options = {});

  par::MeshAttr mesh() const { return theMesh; }
  mlir::ModuleOp module() const { return theModule; }
  Options options;

  /// Sets the full value of a parameter or state; an error is located at its symbol.
  mlir::LogicalResult setParameter(llvm::StringRef name, const Tensor &value);
  /// The full value of a parameter or state.
  mlir::FailureOr<Tensor> parameter(llvm::StringRef name);

  /// Calls a function of the module with full values, cut by the placements of its argument types,
  /// and returns full results. Writes to parameters and states take effect at the end.
  mlir::FailureOr<llvm::SmallVector<Tensor>> call(llvm::StringRef function,
                                                  llvm::ArrayRef<Tensor> inputs);

  /// The gradient that the last call gave each parameter, whole, by the parameter's name: the
  /// operand of `train.update`, or of the optimizer op whose result the parameter becomes.
  const std::map<std::string, Tensor> &gradients() const { return theGradients; }

  /// An optimizer op (train::OptimizerInterface) and its operands.
  struct Update {
    mlir::Operation *op;
    llvm::SmallVector<std::shared_ptr<const Tensor>> operands;
  };
  /// The updates of the last call by their parameters' names, of a program of one rank.
  const std::map<std::string, Update> &updates() const { return theUpdates; }

  /// Of a stage while all run (Stages.h); null otherwise.
  Exchange *exchange = nullptr;

private:
  friend class Execution;
  mlir::ModuleOp theModule;
  par::MeshAttr theMesh;
  std::map<std::string, Stored> store, written;
  std::map<std::string, Tensor> theGradients;
  std::map<std::string, Update> theUpdates;
};

} // namespace partita::interp

#endif // PARTITA_INTERP_INTERPRETER_H
