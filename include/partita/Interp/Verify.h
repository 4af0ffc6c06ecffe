//===- Verify.h - compares a partitioned program to the unpartitioned one -----------*- C++ -*-===//
//
// Verifies by running both programs with the same parameters, tokens and labels (some are ignored,
// unevenly: in some samples none counts). The loss, logits, every gradient, and every parameter and
// optimizer state after the step must agree. Each tensor's error is
//
//     max |a - b| / max(max |b|, 1e-3 x the largest value of its kind in the model)
//
// because some gradients are mathematically zero (a key bias's). If an element's update depends on
// the rounding of such a gradient, like the sign in Lion, the element may have any value that
// gradients equal in double precision give; the next step starts from the unpartitioned program's
// element.
//
// Where sums have a bit per element, the oracle is the published algorithm, applied to the ranks' terms of the
// unpartitioned program's gradient.
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
  /// Whether it is measured how far what a program loses takes it from the other one. Otherwise, where sums have a bit per element, the unpartitioned
  /// program goes on with the momenta that the algorithm makes of the ranks' gradients (OneBitReference.h).
  bool measuresDistance = false;
  Options interpreter;
};

struct VerifyReport {
  struct Entry {
    std::string kind, name; ///< "gradient", "h.0.attn.c_attn.weight"
    double error;           ///< the worst of all steps; infinite if only one side has the tensor
  };
  std::vector<Entry> entries; ///< the worst first
  std::optional<double> loss; ///< of the unpartitioned program, last step; none without @train_step
  /// Elements of all steps that differ because of rounding, and the number of their parameters.
  int64_t undecidedElements = 0, undecidedParameters = 0;
  /// Elements of all steps that compressed sums send with another sign than the reference's, because rounding decides it, and the number of their parameters.
  int64_t followedElements = 0, followedParameters = 0;
  /// With measuresDistance, Euclidean norms over all parameters after training steps: how far the unpartitioned program's have moved, and how far the other's are from them.
  double way = 0, apart = 0;
  double worst() const { return entries.empty() ? INFINITY : entries.front().error; }
  /// Prints a table of the `most` worst errors.
  void print(llvm::raw_ostream &os, size_t most) const;
};

/// Calls @forward and @eval_step, if both modules have them, and @train_step, which both must have
/// or, as programs for inference, neither (then both must have @forward); an error is located in
/// one of them. Agreement is the report's worst() against the tolerance.
mlir::FailureOr<VerifyReport> comparePrograms(mlir::ModuleOp full, mlir::ModuleOp partitioned,
                                              const VerifyOptions &options);

/// Returns full arguments for a function of a model by their `train.role`: tokens below the
/// vocabulary of their tables, labels with holes.
mlir::FailureOr<llvm::SmallVector<Tensor>> modelInputs(mlir::func::FuncOp function, uint64_t seed);

} // namespace partita::interp

#endif // PARTITA_INTERP_VERIFY_H
