//===- Interpreter.h - executes tensor programs on virtual ranks --------------------*- C++ -*-===//
//
// Any phase's IR before `rt` (dialects tx, train, par, zero, amp, offload, func), on as many
// virtual ranks as the module's mesh has, in double precision: slow, obvious, the oracle of all
// tests. The ranks run in lockstep, op by op; a collective sees all ranks' tensors and adds them in
// rank order.
//
// After every op the placements in its result types are compared with what the ranks have: an
// invariant or replicated value that differs between ranks is an error at that op. A program with a
// memory plan is also executed in that memory: a value that is overwritten before its use is an
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
#include <functional>
#include <map>
#include <string>

namespace partita::interp {

class Exchange;

struct Options {
  /// Whether casts to f32, f16 and bf16, and all 16-bit results, round; otherwise they are exact.
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

/// A parameter or state on all ranks, with the type that describes what each rank holds.
struct Stored {
  mlir::Type type;
  RankTensors shards;
};

class Interpreter {
public:
  /// Parameters need setParameter or initialize (InitialValues.h) before a function reads them;
  /// states start with their `value` even without. The module must outlive the interpreter.
  explicit Interpreter(mlir::ModuleOp module, Options options = {});

  par::MeshAttr mesh() const { return theMesh; }
  mlir::ModuleOp module() const { return theModule; }
  Options options;

  /// Sets the full value of a parameter or state; an error is located at its symbol.
  mlir::LogicalResult setParameter(llvm::StringRef name, const Tensor &value);
  /// Returns the full value of a parameter or state.
  mlir::FailureOr<Tensor> parameter(llvm::StringRef name);

  /// Calls a function of the module with full values, cut by the placements of its argument types,
  /// and returns full results. Writes to parameters and states take effect at the end.
  mlir::FailureOr<llvm::SmallVector<Tensor>> call(llvm::StringRef function,
                                                  llvm::ArrayRef<Tensor> inputs);

  /// Returns the full gradient of each parameter in the last call, by the parameter's name: the
  /// operand of `train.update`, or of the optimizer op whose result the parameter becomes.
  const std::map<std::string, Tensor> &gradients() const { return theGradients; }

  /// An optimizer op (train::OptimizerInterface) and its operands.
  struct Update {
    mlir::Operation *op;
    llvm::SmallVector<std::shared_ptr<const Tensor>> operands;
  };
  /// Returns the updates of the last call by their parameters' names, for a program of one rank.
  const std::map<std::string, Update> &updates() const { return theUpdates; }

  /// Called, if set, with the operands of each op before it runs.
  std::function<void(mlir::Operation *, llvm::ArrayRef<RankTensors>)> beforeOp;
  /// Called, if set, with what an op has computed, which it may replace.
  std::function<void(mlir::Operation *, llvm::MutableArrayRef<RankTensors>)> afterOp;

  /// The stage, while all stages run (Stages.h); else null.
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
