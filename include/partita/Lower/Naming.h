//===- Naming.h - names of values in the program ------------------------------------*- C++ -*-===//
//
// A gradient is named after its parameter ("h.0.attn.c_attn.weight.grad"), a value that every
// Transformer has after its role ("h.0.residual"), its cotangent after that ("h.0.dresidual"), other
// values after the parameter that their op reads ("h.0.attn.c_attn"), anything else after its node in the model or, if that
// is generated ("node_view_12"), after its op within the module that is being computed
// ("h.0.attn.attention"). The common prefix of all parameters' names is left out.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_LOWER_NAMING_H
#define PARTITA_LOWER_NAMING_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringSet.h"

namespace partita::rt {

class Naming {
public:
  explicit Naming(mlir::func::FuncOp function);

  /// Returns a name, not yet an identifier.
  std::string of(mlir::Value tensor) const;
  /// Returns the model's module that an op belongs to, "h.0.attn.c_attn"; "" if it is unknown.
  std::string moduleOf(mlir::Operation *op) const;

private:
  void nameGradients(mlir::func::FuncOp function);
  void nameGradient(mlir::Value gradient, std::string name);
  void nameLoss(mlir::func::FuncOp function);
  void findModules(mlir::func::FuncOp function);
  /// Returns the parameter that an op reads, through views; "" if there is none.
  llvm::StringRef parameterOf(mlir::Operation *op) const;
  llvm::StringRef labelOf(mlir::Operation *op) const;
  void findSharedTables(mlir::func::FuncOp function);
  bool isSharedLookup(mlir::Operation *op) const;
  llvm::StringRef shorten(llvm::StringRef name) const;

  std::string prefix;                             // of all parameters, "transformer."
  llvm::DenseMap<mlir::Value, std::string> named; ///< gradients and the loss
  llvm::DenseMap<mlir::Value, std::string> roles;
  llvm::DenseMap<mlir::Operation *, std::string> modules;
  llvm::StringSet<> sharedTables;
};

} // namespace partita::rt

#endif // PARTITA_LOWER_NAMING_H
