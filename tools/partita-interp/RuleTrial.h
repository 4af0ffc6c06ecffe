//===- RuleTrial.h - an op placed by its rule, run, put together -------------------*- C++ -*-===//
//
// The operands of one op, drawn at random; the full op's results and the cotangents of its
// operands; and the same of the op placed in some way on some mesh.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_INTERP_RULETRIAL_H
#define PARTITA_TOOLS_INTERP_RULETRIAL_H

#include "dialects/Par/Placement.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tools/partita-interp/Modes.h"

namespace partita::interp {

/// One way to place the op's operands, and what that makes of its results.
struct Case {
  std::string name;
  llvm::SmallVector<par::Layout, 2> operands, results;
};

class RuleTrial {
public:
  /// With `isOwnRule` the placed op must verify, and its gradient is tried as well.
  RuleTrial(mlir::func::FuncOp function, mlir::Operation *op, ShardRule rule, bool isOwnRule,
            const Run &run)
      : rule(std::move(rule)), isOwnRule(isOwnRule), function(function), op(op), run(run) {}

  /// Draws the operands and runs the full op.
  mlir::LogicalResult prepare();
  /// The op's split form, whole, is the op.
  mlir::LogicalResult checkForm(const RuleLetter &letter);
  /// What the rule makes of the results; runs it and compares. An error says what is wrong.
  mlir::LogicalResult check(Case placed, par::MeshAttr mesh);
  /// The same without errors.
  bool isRight(Case placed, par::MeshAttr mesh);

  const Case &getFull() const { return full; }
  ShardRule rule;
  bool isOwnRule;

private:
  mlir::LogicalResult compare(llvm::ArrayRef<Tensor> found, const std::string &how);
  mlir::LogicalResult localTypes(mlir::TypeRange types, llvm::ArrayRef<par::Layout> layouts,
                                 par::MeshAttr on, llvm::SmallVectorImpl<mlir::Type> &local);
  mlir::FailureOr<llvm::SmallVector<Tensor>> evaluate(const Case &placed, par::MeshAttr on);
  void build(mlir::ModuleOp module, llvm::StringRef name, llvm::ArrayRef<mlir::Type> operandTypes,
             llvm::ArrayRef<mlir::Type> resultTypes, bool gradient);
  llvm::SmallVector<mlir::Value> cotangentsOf(mlir::OpBuilder &builder, mlir::Block &block,
                                              mlir::ValueRange results, mlir::ValueRange operands);

  mlir::func::FuncOp function;
  mlir::Operation *op;
  const Run &run;
  int64_t formParts = 1; // more: build the op's split form
  Case full;
  llvm::SmallVector<Tensor> inputs, cotangents, expected;
};

} // namespace partita::interp

#endif // PARTITA_TOOLS_INTERP_RULETRIAL_H
