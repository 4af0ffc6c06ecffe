//===- Verify.h - is the partitioned program equal to the unpartitioned one? --------*- C++ -*-===//
//
// Design law 1, by running: both programs get the same parameters, tokens and labels (some ignored,
// and unevenly: some samples have none that counts); loss, logits, every gradient, every parameter
// and optimizer state after the step must agree. Each tensor's error is
//
//     max |a - b| / max(max |b|, 1e-3 x the largest value of its kind in the model)
//
// because some gradients are mathematically zero (a key bias's). An element of a parameter whose
// update depends on the rounding of such a gradient, as the sign in Lion does, may differ within what
// gradients that are equal to double precision give; the step after it starts from the whole
// program's element.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_INTERP_VERIFY_H
#define PARTITA_INTERP_VERIFY_H

#include "partita/Interp/Interpreter.h"

namespace partita::interp {

struct VerifyOptions {
  InitialValues values{InitialValues::From::Perturbed, 1, "."};
  uint64_t seed = 1; ///< of tokens and labels
  int64_t steps = 1; ///< optimizer steps, each on new tokens
  double tolerance = 1e-10;
  Options interpreter;
};

struct VerifyReport {
  struct Entry {
    std::string kind, name; ///< "gradient", "h.0.attn.c_attn.weight"
    double error;           ///< the worst of all steps; infinite where only one side has the tensor
  };
  std::vector<Entry> entries; ///< the worst first
  std::optional<double> loss; ///< of the unpartitioned program, last step; none without @train_step
  /// Elements of so many parameters, of all steps, that differ by what rounding decides.
  int64_t undecidedElements = 0, undecidedParameters = 0;
  double worst() const { return entries.empty() ? INFINITY : entries.front().error; }
  /// A table of the `most` worst errors.
  void print(llvm::raw_ostream &os, size_t most) const;
};

/// Calls @forward and @eval_step, where both modules have them, and @train_step, which both need
/// or, as programs for inference, neither (then both need @forward); an error is located in one of
/// them. Agreement is the report's worst() against the tolerance.
mlir::FailureOr<VerifyReport> comparePrograms(mlir::ModuleOp whole, mlir::ModuleOp partitioned,
                                              const VerifyOptions &options);

/// Full arguments for a function of a model by their `train.role`: tokens below the vocabulary of
/// the tables they look into, labels with holes.
mlir::FailureOr<llvm::SmallVector<Tensor>> modelInputs(mlir::func::FuncOp function, uint64_t seed);

} // namespace partita::interp

#endif // PARTITA_INTERP_VERIFY_H
