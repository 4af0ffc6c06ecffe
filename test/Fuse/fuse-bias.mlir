// RUN: partita-opt %s --fuse-bias | FileCheck %s
// RUN: partita-opt %s --fuse-bias -o %t.mlir
// RUN: bash %S/equal.sh %s %t.mlir projection transposed scaled shared

// CHECK-LABEL: func.func @projection
// CHECK: %[[Y:.*]] = tx.matmul_bias %arg0, %arg1 plus %arg2
// CHECK-NEXT: return %[[Y]]
func.func @projection(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>, %b: tensor<6xf32>) -> tensor<8x6xf32> {
  %0 = tx.matmul %x, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  %1 = tx.broadcast %b : tensor<6xf32> -> tensor<8x6xf32>
  %2 = tx.add %0, %1 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
  return %2 : tensor<8x6xf32>
}

// CHECK-LABEL: func.func @transposed
// CHECK: tx.matmul_nt_bias %arg0, %arg1 plus %arg2
func.func @transposed(%x: tensor<2x8x4xf32>, %w: tensor<6x4xf32>, %b: tensor<6xf32>) -> tensor<2x8x6xf32> {
  %0 = tx.matmul_nt %x, %w : (tensor<2x8x4xf32>, tensor<6x4xf32>) -> tensor<2x8x6xf32>
  %1 = tx.broadcast %b : tensor<6xf32> -> tensor<2x8x6xf32>
  %2 = tx.add %1, %0 : (tensor<2x8x6xf32>, tensor<2x8x6xf32>) -> tensor<2x8x6xf32>
  return %2 : tensor<2x8x6xf32>
}

// Operands in 8 bits, stored either way.
// CHECK-LABEL: func.func @scaled
// CHECK: %[[Y:.*]] = tx.scaled_matmul_bias %arg0, %arg1 scaled by %arg3[0, 1] plus %arg4 : {{.*}} -> tensor<8x6xbf16>
// CHECK: %[[Z:.*]] = tx.scaled_matmul_nt_bias %arg0, %arg2 scaled by %arg3[0, 2] plus %arg4
// CHECK-NEXT: return %[[Y]], %[[Z]]
func.func @scaled(%x: tensor<8x4xf8E4M3FN>, %w: tensor<4x6xf8E4M3FN>, %wt: tensor<6x4xf8E4M3FN>, %scales: tensor<3x1xf32>, %b: tensor<6xbf16>) -> (tensor<8x6xbf16>, tensor<8x6xbf16>) {
  %0 = tx.scaled_matmul %x, %w scaled by %scales[0, 1] : (tensor<8x4xf8E4M3FN>, tensor<4x6xf8E4M3FN>, tensor<3x1xf32>) -> tensor<8x6xbf16>
  %1 = tx.broadcast %b : tensor<6xbf16> -> tensor<8x6xbf16>
  %2 = tx.add %0, %1 : (tensor<8x6xbf16>, tensor<8x6xbf16>) -> tensor<8x6xbf16>
  %3 = tx.scaled_matmul_nt %x, %wt scaled by %scales[0, 2] : (tensor<8x4xf8E4M3FN>, tensor<6x4xf8E4M3FN>, tensor<3x1xf32>) -> tensor<8x6xbf16>
  %4 = tx.add %1, %3 : (tensor<8x6xbf16>, tensor<8x6xbf16>) -> tensor<8x6xbf16>
  return %2, %4 : tensor<8x6xbf16>, tensor<8x6xbf16>
}

// A matmul that others use too, and what is no row, stay.
// CHECK-LABEL: func.func @shared
// CHECK-NOT: tx.matmul_bias
func.func @shared(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>, %b: tensor<6xf32>, %c: tensor<8x1xf32>) -> (tensor<8x6xf32>, tensor<8x6xf32>, tensor<8x6xf32>) {
  %0 = tx.matmul %x, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  %1 = tx.broadcast %b : tensor<6xf32> -> tensor<8x6xf32>
  %2 = tx.add %0, %1 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
  %3 = tx.broadcast %c : tensor<8x1xf32> -> tensor<8x6xf32>
  %4 = tx.matmul %x, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  %5 = tx.add %4, %3 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
  return %0, %2, %5 : tensor<8x6xf32>, tensor<8x6xf32>, tensor<8x6xf32>
}
