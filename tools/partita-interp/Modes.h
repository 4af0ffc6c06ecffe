//===- Modes.h - what partita-interp can do -----------------------------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_INTERP_MODES_H
#define PARTITA_TOOLS_INTERP_MODES_H

#include "partita/Interp/InitialValues.h"
#include "partita/Interp/Interpreter.h"

namespace partita::interp {

struct Run {
  std::string function;
  InitialValues values;
  Options options;
  uint64_t seed = 1;
  unsigned times = 1;
  /// The arguments of all calls, one number after the other; random ones when there is no file.
  std::string inputs;
  /// Where the first result of every call (as a column `loss`), the gradients of the first call,
  /// the parameters after the last and its results go; "" for nowhere.
  std::string log, gradients, parameters, results;
  double tolerance = 1e-12;
  /// How many elements of a parameter checkUpdates tries.
  int64_t samples = 64;
  /// Of a program of stages: does a stage wait at a send until its value is received?
  bool blockingSends = false;
};

/// The values of the parameters and states of the interpreter's module, by symbol.
mlir::FailureOr<std::map<std::string, Tensor>> valuesOf(Interpreter &interpreter);
/// max |a - b| / max(|b|), 0 for empty tensors; infinity when the shapes or kinds differ.
double relativeError(const Tensor &a, const Tensor &b);
/// "2x3 = [[1, 2, 3], [4, 5, 6]]"; of more than 64 elements the sum and the extremes.
void print(const Tensor &tensor, llvm::raw_ostream &os);

/// Writes tensors as safetensors, F64; returns what went wrong, or nothing.
std::string writeSafetensors(llvm::StringRef path, const std::map<std::string, Tensor> &tensors);

/// Calls a function, or each, and prints its results, parameters' gradients and new values.
mlir::LogicalResult runFunction(mlir::ModuleOp module, const Run &run);
/// Calls a function of every stage at the same time, and prints the results of each. With the program of all
/// stages, calls its function too: results, parameters and states must agree.
mlir::LogicalResult runStages(mlir::ModuleOp module, mlir::ModuleOp full, const Run &run);
/// Calls two functions ("a,b") on the same random arguments; their results must agree.
mlir::LogicalResult compareFunctions(mlir::ModuleOp module, const Run &run);
/// Every function, differentiated op by op from the op table, against numeric derivatives.
mlir::LogicalResult checkGradients(mlir::ModuleOp module, const Run &run);
/// The gradients that a differentiated function gives its parameters, against differences of its
/// first result, the loss, on any number of ranks.
mlir::LogicalResult checkUpdates(mlir::ModuleOp module, const Run &run);
/// Every function holds one op: its rule, letter by letter, against the full op. `rules` are
/// OP=RULE, used instead of the op's own; with `dialect` set every op of it needs a function.
/// `twoAxes`: also on meshes of two axes; `missing`: lists what a rule forbids without need.
mlir::LogicalResult checkRules(mlir::ModuleOp module, const Run &run,
                               llvm::ArrayRef<std::string> rules, llvm::StringRef dialect,
                               bool twoAxes, bool missing);

/// A model past phase `objective`, partitioned in `count` random ways (the first is number
/// run.seed): each equals the whole program or is refused with a located reason.
mlir::LogicalResult tryPlacements(mlir::ModuleOp module, const Run &run, unsigned count);

/// Builds what computes the cotangents of `of` from those of `results`, op by op from the op table;
/// a null value where no gradient flows.
llvm::SmallVector<mlir::Value> buildCotangents(mlir::OpBuilder &builder, mlir::Block &block,
                                               mlir::ValueRange results,
                                               mlir::ValueRange cotangents, mlir::ValueRange of);

} // namespace partita::interp

#endif // PARTITA_TOOLS_INTERP_MODES_H
