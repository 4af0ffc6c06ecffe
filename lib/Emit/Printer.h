//===- Printer.h - prints EmitC as readable C++ -------------------------------------*- C++ -*-===//

#ifndef PARTITA_LIB_EMIT_PRINTER_H
#define PARTITA_LIB_EMIT_PRINTER_H

#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringSet.h"

namespace partita::emit {

/// On an EmitC op: the comment at the end of its line.
inline constexpr llvm::StringLiteral kCommentAttr = "rt.comment";

/// Prints one emitc.func. Variables are named by their locations, literals are inlined,
/// `rt.comment` becomes a comment at the end of the line, and long lines are broken. Upstream's
/// translateToCpp gives an equivalent program without the names; a test compares both.
class FunctionPrinter {
public:
  explicit FunctionPrinter(llvm::raw_ostream &os) : os(os) {}
  mlir::LogicalResult print(mlir::emitc::FuncOp function);
  /// Prints a line outside of functions verbatim.
  void print(mlir::emitc::VerbatimOp text);

private:
  mlir::LogicalResult printBlock(mlir::Block &block, unsigned depth);
  mlir::LogicalResult printOp(mlir::Operation *op, unsigned depth);
  void printCall(mlir::emitc::CallOpaqueOp call, unsigned depth);
  void printVerbatim(mlir::emitc::VerbatimOp verbatim, unsigned depth);
  mlir::LogicalResult printFor(mlir::emitc::ForOp loop, unsigned depth);
  mlir::LogicalResult printIf(mlir::emitc::IfOp branch, unsigned depth);

  /// Reserves the names of called functions, so that no value hides them.
  void reserveCalled(mlir::emitc::FuncOp function);

  /// Prints a declaration if the value has a name of its own; otherwise keeps the text for its
  /// users.
  void define(mlir::Value value, std::string expression, unsigned depth,
              llvm::StringRef remark = "");
  std::string use(mlir::Value value) const { return names.lookup(value); }
  std::string nameFor(mlir::Value value, llvm::StringRef fallback = "x");
  void line(unsigned depth, llvm::StringRef text, llvm::StringRef remark = "");

  llvm::raw_ostream &os;
  llvm::DenseMap<mlir::Value, std::string> names;
  llvm::StringSet<> taken;
};

/// Returns "float *", "int64_t " etc. followed by the name.
std::string declare(mlir::Type type, llvm::StringRef name);

} // namespace partita::emit

#endif // PARTITA_LIB_EMIT_PRINTER_H
