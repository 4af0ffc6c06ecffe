//===- Groups.h - groups of parameters with their own hyperparameters ---------------*- C++ -*-===//
//
// A group is text: PATTERN:KEY=VALUE[:KEY=VALUE], a glob pattern over parameters' names and the
// values that differ for them: `weight-decay`, and `lr-scale`, a factor of the learning rate. The
// first group whose pattern matches a name applies.
//
//===------------------------------------------------------------------------------------------------===//

#ifndef PARTITA_LIB_OPTIMIZER_GROUPS_H
#define PARTITA_LIB_OPTIMIZER_GROUPS_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/GlobPattern.h"

namespace partita::optimizer {

struct Group {
  double decay, rateScale;
};

class Groups {
public:
  /// Parses groups. Reports invalid text.
  static mlir::FailureOr<Groups> parse(mlir::ModuleOp module, llvm::ArrayRef<std::string> texts);
  /// Reports a group that matches no trained parameter of the module.
  llvm::LogicalResult checkUse(mlir::ModuleOp module) const;
  /// Returns the group of the parameter with this name; `rest` has the values that no group sets.
  Group of(llvm::StringRef name, Group rest) const;
  /// Returns true if a group sets the weight decay of the parameter with this name.
  bool setDecay(llvm::StringRef name) const;

private:
  struct Row {
    std::string text;
    llvm::GlobPattern pattern;
    std::optional<double> decay, rateScale;
  };
  const Row *find(llvm::StringRef name) const;
  std::vector<Row> rows;
};

} // namespace partita::optimizer

#endif // PARTITA_LIB_OPTIMIZER_GROUPS_H
