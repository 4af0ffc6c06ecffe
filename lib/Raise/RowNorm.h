//===- RowNorm.h - the search that raising layer norm and RMSNorm share -------------*- C++ -*-===//
//
// From every square root (or power by a half): the exits, the farthest first; from each exit the
// subgraphs that are a function of one tensor of the exit's type and a few row vectors of its last
// dimension. Epsilon is the constant added under the root. Each way to call the row vectors weight
// and bias is tried; the first that agrees is replaced. A missing weight is 1, a missing bias 0.
// What is the norm along other dimensions, or would be it with the mean of squares under the root,
// without weight and bias, is a near miss.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_LIB_RAISE_ROWNORM_H
#define PARTITA_LIB_RAISE_ROWNORM_H

#include "lib/Raise/NumericCheck.h"
#include "lib/Raise/Remarks.h"
#include <map>

namespace partita::raise {

/// A normalization of rows, as its pass describes it.
struct RowNorm {
  llvm::StringRef op;
  bool hasBias;
  /// Builds the op from x, weight, bias (if it has one) and epsilon; returns its y.
  mlir::Value (*build)(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x,
                       mlir::Value weight, mlir::Value bias, double epsilon);
};

class RowNormRaiser {
public:
  RowNormRaiser(const RowNorm &norm, Report &report, PassStatistic &checks)
      : norm(norm), report(report), checks(checks) {}

  void run(mlir::Operation *function);

private:
  /// A candidate's leaves by role, as positions in the list of leaves; -1 for none.
  struct Roles {
    int x = -1, weight = -1, bias = -1;
  };
  struct Outcome {
    Roles roles;
    double error = 1;
    std::string blame;
    bool accepted = false;
  };

  llvm::SmallVector<Roles> choicesOf(const Subgraph &subgraph);
  mlir::Value build(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x, mlir::Value weight,
                    mlir::Value bias, double epsilon);
  std::optional<double> errorOf(const Subgraph &subgraph, Roles roles, double epsilon,
                                Substitution substitution);
  Outcome compute(const Subgraph &subgraph, llvm::ArrayRef<Roles> choices, double epsilon);
  void raise(mlir::Operation *anchor, const Independent &independent);

  static bool isInterior(mlir::Operation *op);

  // Near misses (RowNormNearMiss.cpp).
  void explain(mlir::Operation *anchor, llvm::ArrayRef<mlir::Value> exits,
               const Independent &independent, double epsilon);
  std::string explainAxes(const Subgraph &subgraph, double epsilon);
  std::string explainMean(mlir::Operation *anchor, const Subgraph &subgraph, double epsilon);
  bool isAlong(llvm::ArrayRef<int64_t> axes, const Subgraph &subgraph, double epsilon);
  bool isScaled(double factor, mlir::Operation *squared, const Subgraph &subgraph, double epsilon);

  const RowNorm &norm;
  Report &report;
  PassStatistic &checks;
  std::map<StructuralKey, Outcome> known;
};

} // namespace partita::raise

#endif // PARTITA_LIB_RAISE_ROWNORM_H
