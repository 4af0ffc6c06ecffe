//===- KernelsToEmitC.h - kernels as functions of plain loops -----------------------*- C++ -*-===//

#ifndef PARTITA_LIB_LOWER_KERNELSTOEMITC_H
#define PARTITA_LIB_LOWER_KERNELSTOEMITC_H

#include "dialects/Rt/Rt.h"
#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringSet.h"

namespace partita::rt {

/// `float *`, `const float *`
mlir::Type cppPointer(mlir::Type element, bool readOnly = false);

/// Replaces all of the module's kernels with functions of loops.
void convertKernelsToLoops(mlir::ModuleOp module);

/// One of an update.
void convertKernel(UpdateKernelOp kernel);

/// The names of kernels that are called over tables of tensors.
llvm::StringSet<> kernelsOverTensors(mlir::ModuleOp module);
/// The type of a list of an update's scalars, as an argument: `std::initializer_list<adamw_step>`.
mlir::Type stepsType(UpdateKernelOp kernel);

/// `static void name(types...)` with an empty body; the arguments are called like this.
mlir::emitc::FuncOp makeKernelFunction(mlir::OpBuilder &b, mlir::Location loc,
                                       llvm::StringRef name, llvm::ArrayRef<mlir::Type> types,
                                       llvm::ArrayRef<std::string> names);
/// A line of text in which words that are names of the function's arguments become operands.
void addKernelLine(mlir::OpBuilder &b, mlir::Location loc, llvm::StringRef text,
                   llvm::ArrayRef<std::string> names, mlir::Block &body);

} // namespace partita::rt

#endif // PARTITA_LIB_LOWER_KERNELSTOEMITC_H
