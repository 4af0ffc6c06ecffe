//===- OneBitReference.h - what 1-bit optimizers make of the ranks' gradients -------*- C++ -*-===//
//
// The reference for steps whose sums have a bit per element (par.one_bit_all_reduce). The unpartitioned program sums nothing; here it goes on with the
// momenta that ranks average, computed anew from what is known without the pass that inserts those sums: each rank's term of the gradient, the terms'
// sum being the unpartitioned program's gradient (which the caller compares), the momentum before the step, and the published algorithm (1-bit Adam,
// arXiv 2102.02888, algorithm 1), in double precision.
//
// A sign is sent even of a number that is zero but for rounding. Then the program's own sign counts, which its errors tell: nothing says which one is right.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_LIB_INTERP_ONEBITREFERENCE_H
#define PARTITA_LIB_INTERP_ONEBITREFERENCE_H

#include "dialects/Par/OneBit.h"
#include "lib/Interp/ComparedProgram.h"
#include <mutex>
#include <set>

namespace partita::interp {

class OneBitReference {
public:
  /// Watches both programs, which must stay where they are while this lives.
  OneBitReference(ComparedProgram &full, ComparedProgram &partitioned);
  ~OneBitReference();
  OneBitReference(const OneBitReference &) = delete;

  /// Does the partitioned program compress any sum in step `t`?
  bool compresses(int64_t t) const;

  /// After the partitioned program's step `t` and before the whole one's: gives the latter the gradients, and the factor that clips them, that make its
  /// momenta the averages of the ranks'.
  mlir::LogicalResult prepare(int64_t t);

  /// Of the last step: the sums of the ranks' terms, and in their place the whole program's gradients.
  const Named &terms() const { return theTerms; }
  const Named &gradients() const { return theGradients; }
  /// The averaged momenta.
  const Named &momenta() const { return theMomenta; }
  /// What the last step left out, by the states' names.
  mlir::FailureOr<Named> errors() const;
  /// Goes on with the program's errors.
  mlir::LogicalResult adoptErrors();

  int64_t elements =
      0; ///< whose sign, decided by rounding, is another one here, of all steps so far
  std::set<std::string> parameters; ///< those with such elements

private:
  /// A value of a sum, as the partitioned program has it.
  struct Summed {
    Interpreter *stage;
    par::OneBitAllReduceOp sum;
    unsigned number;
    RankTensors terms;
    RankTensors workers, servers; ///< the errors; none in the first step
  };
  void note(Interpreter &stage, mlir::Operation *op, llvm::ArrayRef<RankTensors> operands);
  void replace(mlir::Operation *op, llvm::MutableArrayRef<RankTensors> results);
  mlir::LogicalResult average(const std::string &parameter, Summed &summed);
  /// By what gradients are multiplied where nobody knows the norm of their sum.
  mlir::FailureOr<double> clipFactor(train::OptimizerInterface update);
  mlir::LogicalResult replaceGradient(train::OptimizerInterface update,
                                      const std::string &parameter, Tensor gradient, double clip);

  ComparedProgram &full, &partitioned;
  std::mutex mutex; ///< stages run at the same time
  std::map<std::string, Summed> summed;
  std::map<std::string, train::OptimizerInterface> updates; ///< the whole program's
  llvm::DenseMap<mlir::Value, Tensor> replacements;         ///< in the whole program's next call
  llvm::DenseMap<mlir::Value, std::string> gradientOf;
  Named theTerms, theGradients, theMomenta;
};

} // namespace partita::interp

#endif // PARTITA_LIB_INTERP_ONEBITREFERENCE_H
