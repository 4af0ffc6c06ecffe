//===- Undecided.h - elements whose update rounding decides -------------------------*- C++ -*-===//
//
// Lion moves an element by the sign of a mean of gradients. If that mean is zero but for rounding, as
// for a key bias, the programs may move the element in opposite directions and both be right.
//
// So an element of a parameter that differs after a step is compared with an interval: the results
// of the whole program's own update for the gradient minus and plus kNoise of its scale. Inside it,
// nothing says which program is right, and the partitioned one continues with the whole one's
// element. The interval of an update that is continuous at this scale is far below the tolerance,
// so it changes nothing there.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_LIB_INTERP_UNDECIDED_H
#define PARTITA_LIB_INTERP_UNDECIDED_H

#include "partita/Interp/Interpreter.h"
#include <set>

namespace partita::interp {

/// The uncertainty of a gradient in double precision, relative to max(its largest element, 1e-3 x
/// the largest of all gradients). Sums in another order differ by some 1e-15.
constexpr double kNoise = 1e-13;

/// The min and max of each element.
struct Interval {
  Tensor least, most;
};

class Undecided {
public:
  explicit Undecided(double tolerance) : tolerance(tolerance) {}

  /// After a step of both: finds the undecided elements of parameters and masters, and gives
  /// each stage of `partitioned` the whole program's.
  mlir::LogicalResult settle(Interpreter &full, llvm::MutableArrayRef<Interpreter> partitioned);

  int64_t elements = 0;             ///< of all steps so far
  std::set<std::string> parameters; ///< those with such elements

private:
  mlir::LogicalResult settle(Interpreter &partitioned, llvm::StringRef symbol,
                             const std::string &parameter, const Tensor &expected,
                             const Interval &interval, double allowed);
  double tolerance;
};

} // namespace partita::interp

#endif // PARTITA_LIB_INTERP_UNDECIDED_H
