//===- CudaKernels.h - converts kernels to the arithmetic of one element ------------*- C++ -*-===//

#ifndef PARTITA_LIB_EMIT_TARGETS_CUDAKERNELS_H
#define PARTITA_LIB_EMIT_TARGETS_CUDAKERNELS_H

#include "mlir/IR/BuiltinOps.h"

namespace partita::rt {

/// Replaces all of the module's kernels by functions with one launch each, after the text with the
/// arithmetic of one element.
void convertKernelsToCuda(mlir::ModuleOp module);

} // namespace partita::rt

#endif // PARTITA_LIB_EMIT_TARGETS_CUDAKERNELS_H
