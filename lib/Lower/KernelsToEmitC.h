//===- KernelsToEmitC.h - kernels as functions of plain loops -----------------------*- C++ -*-===//

#ifndef PARTITA_LIB_LOWER_KERNELSTOEMITC_H
#define PARTITA_LIB_LOWER_KERNELSTOEMITC_H

#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::rt {

/// `float *`, `const float *`
mlir::Type cppPointer(mlir::Type element, bool readOnly = false);

/// Replaces all of the module's kernels with functions.
void convertKernels(mlir::ModuleOp module);

} // namespace partita::rt

#endif // PARTITA_LIB_LOWER_KERNELSTOEMITC_H
