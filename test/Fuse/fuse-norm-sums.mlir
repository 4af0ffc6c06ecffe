// RUN: partita-opt %s --fuse-norm-sums | FileCheck %s
// RUN: partita-opt %s --fuse-norm-sums -o %t.mlir
// RUN: bash %S/equal.sh %s %t.mlir residual alone
// RUN: sed '/^module/s/cuda/cpu/' %t.mlir | partita-opt --plan-memory --lower-to-rt | FileCheck %s --check-prefix=RT
// RUN: partita-opt %t.mlir --plan-memory --lower-to-rt | FileCheck %s --check-prefix=RT

module attributes {rt.target = "cuda"} {
  // The bias has been added to the residual: its gradient is that of both branches.
  // CHECK-LABEL: func.func @residual(
  // CHECK-NEXT: %[[DX:.*]], %[[DW:.*]], %[[DB:.*]], %[[SUMS:.*]] = tx.layer_norm_grad_add
  // CHECK-NEXT: return %[[DX]], %[[DW]], %[[DB]], %[[SUMS]]
  // RT-LABEL: func.func @residual(
  // RT-NOT: rt.column_sum
  // RT: rt.layer_norm_backward {{.*}}operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 1>
  // RT-NOT: rt.column_sum
  func.func @residual(%x: tensor<4x6xf32>, %w: tensor<6xf32>, %mean: tensor<4xf32>, %rstd: tensor<4xf32>, %dy: tensor<4x6xf32>, %res: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) {
    %dx, %dw, %db, %sums = tx.layer_norm_grad_add %x, %w, %mean, %rstd, %dy, %res : (tensor<4x6xf32>, tensor<6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4x6xf32>, tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>)
    %0 = tx.reduce_sum %dx [0] : tensor<4x6xf32> -> tensor<6xf32>
    return %dx, %dw, %db, %0 : tensor<4x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
  }

  // Without a residual, and in the shape that the matmul has it in.
  // CHECK-LABEL: func.func @alone(
  // CHECK: %[[DX:.*]], %{{.*}}, %{{.*}}, %[[SUMS:.*]] = tx.layer_norm_grad %
  // CHECK-NEXT: %[[FLAT:.*]] = tx.reshape %[[DX]]
  // CHECK-NEXT: return %[[FLAT]], %[[SUMS]]
  // RT-LABEL: func.func @alone(
  // RT: rt.layer_norm_backward {{.*}}operandSegmentSizes = array<i32: 1, 0, 0, 1, 1, 1, 1, 1, 1>
  func.func @alone(%x: tensor<2x4x6xbf16>, %w: tensor<6xbf16>, %mean: tensor<2x4xf32>, %rstd: tensor<2x4xf32>, %dy: tensor<2x4x6xbf16>) -> (tensor<8x6xbf16>, tensor<6xbf16>) {
    %dx, %dw, %db, %sums = tx.layer_norm_grad %x, %w, %mean, %rstd, %dy : (tensor<2x4x6xbf16>, tensor<6xbf16>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4x6xbf16>) -> (tensor<2x4x6xbf16>, tensor<6xbf16>, tensor<6xbf16>, tensor<6xbf16>)
    %0 = tx.reshape %dx : tensor<2x4x6xbf16> -> tensor<8x6xbf16>
    %1 = tx.reduce_sum %0 [0] : tensor<8x6xbf16> -> tensor<6xbf16>
    return %0, %1 : tensor<8x6xbf16>, tensor<6xbf16>
  }

  // Columns, a part of the rows, rows of something else, and rows of dx that are multiplied first.
  // CHECK-LABEL: func.func @others(
  // CHECK-COUNT-4: tx.reduce_sum
  func.func @others(%x: tensor<6x6xf32>, %w: tensor<6xf32>, %mean: tensor<6xf32>, %rstd: tensor<6xf32>, %dy: tensor<6x6xf32>) -> (tensor<6xf32>, tensor<2x6xf32>, tensor<6xf32>, tensor<6xf32>) {
    %dx, %dw, %db, %sums = tx.layer_norm_grad %x, %w, %mean, %rstd, %dy : (tensor<6x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6x6xf32>) -> (tensor<6x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>)
    %0 = tx.reduce_sum %dx [1] : tensor<6x6xf32> -> tensor<6xf32>
    %1 = tx.reshape %dx : tensor<6x6xf32> -> tensor<2x3x6xf32>
    %2 = tx.reduce_sum %1 [1] : tensor<2x3x6xf32> -> tensor<2x6xf32>
    %3 = tx.reduce_sum %dy [0] : tensor<6x6xf32> -> tensor<6xf32>
    %4 = tx.mul %dx, %x : (tensor<6x6xf32>, tensor<6x6xf32>) -> tensor<6x6xf32>
    %5 = tx.reduce_sum %4 [0] : tensor<6x6xf32> -> tensor<6xf32>
    return %0, %2, %3, %5 : tensor<6xf32>, tensor<2x6xf32>, tensor<6xf32>, tensor<6xf32>
  }

  // A sum over micro-batches in 32 bits: rounded before it is added, these would lose bits.
  // CHECK-LABEL: func.func @wide(
  // CHECK: tx.reduce_sum
  func.func @wide(%x: tensor<4x6xbf16>, %w: tensor<6xbf16>, %mean: tensor<4xf32>, %rstd: tensor<4xf32>, %dy: tensor<4x6xbf16>, %sum: tensor<6xf32>) -> (tensor<4x6xbf16>, tensor<6xf32>) {
    %dx, %dw, %db, %sums = tx.layer_norm_grad %x, %w, %mean, %rstd, %dy : (tensor<4x6xbf16>, tensor<6xbf16>, tensor<4xf32>, tensor<4xf32>, tensor<4x6xbf16>) -> (tensor<4x6xbf16>, tensor<6xbf16>, tensor<6xbf16>, tensor<6xbf16>)
    %0 = tx.reduce_sum %dx [0] : tensor<4x6xbf16> -> tensor<6xbf16>
    %1 = tx.cast %0 : tensor<6xbf16> -> tensor<6xf32>
    %2 = tx.add %sum, %1 : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
    return %dx, %2 : tensor<4x6xbf16>, tensor<6xf32>
  }
}
