//===- KernelsToEmitC.h - kernels as functions of plain loops -----------------------*- C++ -*-===//

#ifndef PARTITA_LIB_EMIT_EMITC_KERNELSTOEMITC_H
#define PARTITA_LIB_EMIT_EMITC_KERNELSTOEMITC_H

#include "dialects/Rt/Rt.h"
#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringSet.h"

namespace partita::rt {

/// Returns `float *`, `const float *`.
mlir::Type cppPointer(mlir::Type element, bool readOnly = false);

/// Returns the counter of a kernel's loop, the outermost one's first: "i", "j", ...
std::string loopCounter(int64_t loop);

/// Replaces all of the module's kernels by functions with loops.
void convertKernelsToLoops(mlir::ModuleOp module);

/// Replaces an update's kernel.
void convertKernel(UpdateKernelOp kernel);

/// Replaces all layouts of block-sparse attention by functions that return tables. onDevice: kernels read these from
/// the memory of a device.
void convertBlockLayouts(mlir::ModuleOp module, bool onDevice);

/// Returns the names of kernels that are called over tables of tensors.
llvm::StringSet<> kernelsOverTensors(mlir::ModuleOp module);
/// Returns the type of the argument that lists an update's scalars:
/// `std::initializer_list<adamw_step>`.
mlir::Type stepsType(UpdateKernelOp kernel);

/// Creates `static void name(types...)` with an empty body and these names of arguments.
mlir::emitc::FuncOp makeKernelFunction(mlir::OpBuilder &b, mlir::Location loc, llvm::StringRef name,
                                       llvm::ArrayRef<mlir::Type> types,
                                       llvm::ArrayRef<std::string> names);
/// Adds a line of text, in which names of the function's arguments become operands.
void addKernelLine(mlir::OpBuilder &b, mlir::Location loc, llvm::StringRef text,
                   llvm::ArrayRef<std::string> names, mlir::Block &body);

} // namespace partita::rt

#endif // PARTITA_LIB_EMIT_EMITC_KERNELSTOEMITC_H
