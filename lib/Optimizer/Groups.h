//===- Groups.h - parameters that are updated otherwise than the rest ---------------*- C++ -*-===//
//
// A group is text: PATTERN:KEY=VALUE[:KEY=VALUE], a glob pattern over parameters' names and what is
// other for them: `weight-decay`, and `lr-scale`, a factor of the learning rate. The first group
// whose pattern a name matches has it.
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
  /// Reports text that is no group.
  static mlir::FailureOr<Groups> parse(mlir::ModuleOp module, llvm::ArrayRef<std::string> texts);
  /// Reports a group that has no parameter of the module which is trained.
  llvm::LogicalResult checkUse(mlir::ModuleOp module) const;
  /// What holds for the parameter of this name, where `rest` holds for one without a group.
  Group of(llvm::StringRef name, Group rest) const;
  /// Does a group say how the parameter of this name decays?
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
