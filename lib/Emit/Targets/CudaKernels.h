//===- CudaKernels.h - kernels as the arithmetic of one element ---------------------*- C++ -*-===//

#ifndef PARTITA_LIB_EMIT_CUDAKERNELS_H
#define PARTITA_LIB_EMIT_CUDAKERNELS_H

#include "mlir/IR/BuiltinOps.h"

namespace partita::rt {

/// Replaces all of the module's kernels with functions of one launch, behind the text of an
/// element's arithmetic.
void convertKernelsToCuda(mlir::ModuleOp module);

} // namespace partita::rt

#endif // PARTITA_LIB_EMIT_CUDAKERNELS_H
