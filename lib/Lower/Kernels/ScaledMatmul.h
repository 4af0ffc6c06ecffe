//===- ScaledMatmul.h - lowers matmuls of 8-bit operands ----------------------------*- C++ -*-===//

#ifndef PARTITA_LIB_LOWER_KERNELS_SCALEDMATMUL_H
#define PARTITA_LIB_LOWER_KERNELS_SCALEDMATMUL_H

#include "partita/Lower/Lowering.h"

namespace partita::rt {

/// Lowers `matmul`, or the fused matmul around it, of which `input` returns the operand for an
/// argument; an addend, if it is not null, is added to the result.
llvm::LogicalResult lowerScaledMatmul(mlir::Operation *matmul, Lowering &l,
                                      llvm::function_ref<mlir::Value(mlir::Value)> input,
                                      mlir::Value addend = {});

} // namespace partita::rt

#endif // PARTITA_LIB_LOWER_KERNELS_SCALEDMATMUL_H
