//===- TensorRoles.h - what tensors are in a Transformer ----------------------------*- C++ -*-===//
//
// Some tensors have names that every reader of a Transformer knows: the residual stream, query, key
// and value, the logits. What a tensor is, is read off the ops that make it and read it. A
// cotangent is called "d" and the name of its tensor in the forward pass.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_LIB_LOWER_TENSORROLES_H
#define PARTITA_LIB_LOWER_TENSORROLES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

namespace partita::rt {

class TensorRoles {
public:
  struct Names {
    /// The module that an op belongs to, "h.0.attn.c_attn".
    llvm::function_ref<std::string(mlir::Operation *)> moduleOf;
    /// The parameter that a value is, or "".
    llvm::function_ref<llvm::StringRef(mlir::Value)> parameterOf;
    /// True if an op's result is better named after the parameter that the op reads.
    llvm::function_ref<bool(mlir::Operation *)> hasParameter;
    /// What a value without a role is called.
    llvm::function_ref<std::string(mlir::Value)> otherwise;
  };

  /// Returns names, not yet identifiers, of all tensors of the function that have a role.
  static llvm::DenseMap<mlir::Value, std::string> find(mlir::func::FuncOp function,
                                                       const Names &names);

private:
  explicit TensorRoles(const Names &names) : names(names) {}

  void nameOutputs(mlir::func::FuncOp function);
  void nameAttention(mlir::Operation *op);
  void nameResidual(mlir::Operation *norm);
  void nameLoss(mlir::Operation *op);
  void nameOther(mlir::Operation *op);
  void notePairs(mlir::Operation *op);
  void noteMatmulPairs(mlir::Operation *op);
  void noteJoin(mlir::Operation *op);
  void nameCotangents();

  /// Names what `value` is a view of: "h.0.residual" if `op` belongs to "h.0.ln_1".
  void name(mlir::Value value, llvm::StringRef role, mlir::Operation *op = nullptr);
  /// Notes what `cotangent` is the cotangent of, if that is not known yet.
  void pair(mlir::Value cotangent, mlir::Value value);
  std::string layerOf(mlir::Operation *op) const;

  const Names &names;
  llvm::DenseMap<mlir::Value, std::string> roles;
  llvm::DenseSet<mlir::Value> stream;  ///< of residuals
  llvm::DenseSet<mlir::Value> encoded; ///< named so: where the stream begins
  llvm::DenseSet<mlir::Value> losses;  ///< of tokens
  /// How many of a layer are known in a block, first of the forward pass, then of the backward pass,
  /// which may compute them again.
  llvm::DenseMap<mlir::Block *, llvm::StringMap<unsigned>> residuals[2];
  llvm::MapVector<mlir::Value, mlir::Value> pairs;
  /// Forward matmuls by parameter; null if several read it.
  llvm::StringMap<mlir::Operation *> matmuls;
};

} // namespace partita::rt

#endif // PARTITA_LIB_LOWER_TENSORROLES_H
