// RUN: partita-opt %s --fuse-addends --canonicalize | FileCheck %s
// RUN: partita-opt %s --fuse-addends -o %t.mlir
// RUN: bash %S/equal.sh %s %t.mlir residual chain waited cotangent weight needed others narrow scaled
// RUN: partita-opt %s --fuse-addends --canonicalize --plan-memory --lower-to-rt | FileCheck %s --check-prefix=RT
// The CPU's matmuls have no second matrix to add.
// RUN: sed '/^module/s/cuda/cpu/' %s | partita-opt --fuse-addends | FileCheck %s --check-prefix=CPU --implicit-check-not=fused_matmul
// CPU: func.func @residual
// RUN: sed '/^module/s/cuda/cpu/' %t.mlir | not partita-opt --plan-memory --lower-to-rt 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: 'tx.fused_matmul' op has no kernel on the target 'cpu'

module attributes {rt.target = "cuda"} {
  // A bias in between, in another shape than the matmul's: as GPT-2 is exported. The residual lives on.
  // CHECK-LABEL: func.func @residual(
  // CHECK: %[[R:.*]] = tx.reshape %arg3 : tensor<2x4x6xf32> -> tensor<8x6xf32>
  // CHECK: %[[F:.*]] = tx.fused_matmul (%[[A:.*]] = %arg0, %[[W:.*]] = %arg1, %[[B:.*]] = %arg2, %[[X:.*]] = %[[R]]) : {{.*}} {
  // CHECK-NEXT:   %[[Y:.*]] = tx.matmul_bias %[[A]], %[[W]] plus %[[B]]
  // CHECK-NEXT:   %[[SUM:.*]] = tx.add %[[X]], %[[Y]]
  // CHECK-NEXT:   tx.fused %[[SUM]]
  // CHECK: %[[Z:.*]] = tx.reshape %[[F]] : tensor<8x6xf32> -> tensor<2x4x6xf32>
  // CHECK: return %[[Z]], %arg3
  // RT-LABEL: func.func @residual(
  // RT: rt.gemm_add {{.*}} {k = 4 : i64, ldAddend = 6 : i64, lda = 4 : i64, ldb = 6 : i64, ldc = 6 : i64, m = 8 : i64, n = 6 : i64, transA = false, transB = false}
  func.func @residual(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>, %b: tensor<6xf32>, %residual: tensor<2x4x6xf32>) -> (tensor<2x4x6xf32>, tensor<2x4x6xf32>) {
    %0 = tx.matmul %x, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %1 = tx.broadcast %b : tensor<6xf32> -> tensor<8x6xf32>
    %2 = tx.add %0, %1 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    %3 = tx.reshape %2 : tensor<8x6xf32> -> tensor<2x4x6xf32>
    %4 = tx.add %residual, %3 : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
    return %4, %residual : tensor<2x4x6xf32>, tensor<2x4x6xf32>
  }

  // One residual after the other: the second sum is arithmetic after the first until it is part of a matmul itself.
  // CHECK-LABEL: func.func @chain(
  // CHECK: %[[FIRST:.*]] = tx.fused_matmul ({{.*}} = %arg1)
  // CHECK: %[[MEAN:.*]] = tx.softmax %[[FIRST]]
  // CHECK: %[[SECOND:.*]] = tx.fused_matmul (%{{.*}} = %[[MEAN]], %{{.*}} = %arg0, %{{.*}} = %[[FIRST]])
  // CHECK: return %[[SECOND]]
  // RT-LABEL: func.func @chain(
  // The first sum stands where the second one does: it dies there.
  // RT: rt.gemm_add %[[C:.*]], %{{.*}}, %{{.*}}, %{{.*}} {
  // RT: rt.gemm_add %[[AT:[^,]*]], %{{[^,]*}}, %{{[^,]*}}, %[[AT]] {
  func.func @chain(%w: tensor<6x6xf16>, %x: tensor<8x6xf16>) -> tensor<8x6xf16> {
    %0 = tx.softmax %x : (tensor<8x6xf16>) -> tensor<8x6xf16>
    %1 = tx.matmul %0, %w : (tensor<8x6xf16>, tensor<6x6xf16>) -> tensor<8x6xf16>
    %2 = tx.add %x, %1 : (tensor<8x6xf16>, tensor<8x6xf16>) -> tensor<8x6xf16>
    %3 = tx.softmax %2 : (tensor<8x6xf16>) -> tensor<8x6xf16>
    %4 = tx.matmul_nt %3, %w : (tensor<8x6xf16>, tensor<6x6xf16>) -> tensor<8x6xf16>
    %5 = tx.add %4, %2 : (tensor<8x6xf16>, tensor<8x6xf16>) -> tensor<8x6xf16>
    return %5 : tensor<8x6xf16>
  }

  // The addend is made after the matmul: it is waited for.
  // CHECK-LABEL: func.func @waited(
  // CHECK: tx.softmax
  // CHECK-NEXT: tx.fused_matmul
  // CHECK-NEXT: tx.matmul_nt
  func.func @waited(%x: tensor<8x4xf32>, %w: tensor<6x4xf32>, %y: tensor<8x6xf32>) -> tensor<8x6xf32> {
    %0 = tx.matmul_nt %x, %w : (tensor<8x4xf32>, tensor<6x4xf32>) -> tensor<8x6xf32>
    %1 = tx.softmax %y : (tensor<8x6xf32>) -> tensor<8x6xf32>
    %2 = tx.add %0, %1 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    return %2 : tensor<8x6xf32>
  }

  // The cotangent of what three matmuls have read.
  // CHECK-LABEL: func.func @cotangent(
  // CHECK: %[[Q:.*]] = tx.matmul_nt %arg0, %arg3
  // CHECK: %[[QK:.*]] = tx.fused_matmul (%{{.*}} = %arg1, %{{.*}} = %arg4, %{{.*}} = %[[Q]])
  // CHECK: %[[QKV:.*]] = tx.fused_matmul (%{{.*}} = %arg2, %{{.*}} = %arg5, %{{.*}} = %[[QK]])
  // CHECK: return %[[QKV]]
  func.func @cotangent(%q: tensor<8x6xf32>, %k: tensor<8x2xf32>, %v: tensor<8x2xf32>, %wq: tensor<4x6xf32>, %wk: tensor<4x2xf32>, %wv: tensor<4x2xf32>) -> tensor<8x4xf32> {
    %0 = tx.matmul_nt %q, %wq : (tensor<8x6xf32>, tensor<4x6xf32>) -> tensor<8x4xf32>
    %1 = tx.matmul_nt %k, %wk : (tensor<8x2xf32>, tensor<4x2xf32>) -> tensor<8x4xf32>
    %2 = tx.matmul_nt %v, %wv : (tensor<8x2xf32>, tensor<4x2xf32>) -> tensor<8x4xf32>
    %3 = tx.add %0, %1 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %4 = tx.add %3, %2 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    return %4 : tensor<8x4xf32>
  }

  // A weight's gradient is for fuse-accumulation, and a bias for fuse-bias.
  // CHECK-LABEL: func.func @weight(
  // CHECK-NOT: tx.fused_matmul
  func.func @weight(%x: tensor<8x4xf32>, %dy: tensor<8x6xf32>, %sum: tensor<4x6xf32>, %w: tensor<4x6xf32>, %b: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<8x6xf32>) {
    %0 = tx.matmul_tn %x, %dy : (tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
    %1 = tx.add %sum, %0 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    %2 = tx.matmul %x, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %3 = tx.broadcast %b : tensor<6xf32> -> tensor<8x6xf32>
    %4 = tx.add %2, %3 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    return %1, %4 : tensor<4x6xf32>, tensor<8x6xf32>
  }

  // What is added is the matmul's operand; the matmul to itself.
  // CHECK-LABEL: func.func @needed(
  // CHECK-NOT: tx.fused_matmul
  func.func @needed(%x: tensor<8x6xf32>, %w: tensor<6x6xf32>) -> (tensor<8x6xf32>, tensor<8x6xf32>) {
    %0 = tx.matmul %x, %w : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
    %1 = tx.add %x, %0 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    %2 = tx.matmul %x, %w : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
    %3 = tx.add %2, %2 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    return %1, %3 : tensor<8x6xf32>, tensor<8x6xf32>
  }

  // Others read the matmul, or more arithmetic follows.
  // CHECK-LABEL: func.func @others(
  // CHECK-NOT: tx.fused_matmul
  func.func @others(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>, %y: tensor<8x6xf32>) -> (tensor<8x6xf32>, tensor<8x6xf32>, tensor<8x6xf32>) {
    %0 = tx.matmul %x, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %1 = tx.add %y, %0 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    %2 = tx.matmul %x, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %3 = tx.add %y, %2 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    %4 = tx.gelu_tanh %3 : (tensor<8x6xf32>) -> tensor<8x6xf32>
    return %0, %1, %4 : tensor<8x6xf32>, tensor<8x6xf32>, tensor<8x6xf32>
  }

  // In 16 bits too: the sum is rounded once.
  // CHECK-LABEL: func.func @narrow(
  // CHECK: tx.fused_matmul
  func.func @narrow(%x: tensor<8x4xbf16>, %w: tensor<4x6xbf16>, %y: tensor<8x6xbf16>) -> tensor<8x6xbf16> {
    %0 = tx.matmul %x, %w : (tensor<8x4xbf16>, tensor<4x6xbf16>) -> tensor<8x6xbf16>
    %1 = tx.add %0, %y : (tensor<8x6xbf16>, tensor<8x6xbf16>) -> tensor<8x6xbf16>
    return %1 : tensor<8x6xbf16>
  }

  // Operands in 8 bits, with a bias in between and without: the addend has the result's type.
  // CHECK-LABEL: func.func @scaled(
  // CHECK: %[[F:.*]] = tx.fused_matmul (%[[A:.*]] = %arg0, %[[W:.*]] = %arg1, %[[S:.*]] = %arg2, %[[B:.*]] = %arg3, %[[X:.*]] = %arg4) : {{.*}} {
  // CHECK-NEXT:   %[[Y:.*]] = tx.scaled_matmul_nt_bias %[[A]], %[[W]] scaled by %[[S]][0, 2] plus %[[B]]
  // CHECK-NEXT:   %[[SUM:.*]] = tx.add %[[X]], %[[Y]]
  // CHECK-NEXT:   tx.fused %[[SUM]] : tensor<8x6xbf16>
  // CHECK: tx.fused_matmul ({{.*}} = %[[F]])
  // CHECK-NEXT: tx.scaled_matmul_nt %{{.*}}, %{{.*}} scaled by %{{.*}}[1, 2]
  // RT-LABEL: func.func @scaled(
  // RT: rt.scaled_gemm {{.*}} {k = 4 : i64, m = 8 : i64, n = 6 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1>, transA = false, transB = true}
  // RT: rt.scaled_gemm %[[C:[^,]*]], {{.*}}, %{{[^,]*}} {{{.*}}operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 1>
  func.func @scaled(%x: tensor<8x4xf8E4M3FN>, %w: tensor<6x4xf8E4M3FN>, %scales: tensor<3x1xf32>, %b: tensor<6xbf16>, %y: tensor<8x6xbf16>, %z: tensor<8x4xf8E5M2>) -> tensor<8x6xbf16> {
    %0 = tx.scaled_matmul_nt %x, %w scaled by %scales[0, 2] : (tensor<8x4xf8E4M3FN>, tensor<6x4xf8E4M3FN>, tensor<3x1xf32>) -> tensor<8x6xbf16>
    %1 = tx.broadcast %b : tensor<6xbf16> -> tensor<8x6xbf16>
    %2 = tx.add %0, %1 : (tensor<8x6xbf16>, tensor<8x6xbf16>) -> tensor<8x6xbf16>
    %3 = tx.add %y, %2 : (tensor<8x6xbf16>, tensor<8x6xbf16>) -> tensor<8x6xbf16>
    %4 = tx.scaled_matmul_nt %z, %w scaled by %scales[1, 2] : (tensor<8x4xf8E5M2>, tensor<6x4xf8E4M3FN>, tensor<3x1xf32>) -> tensor<8x6xbf16>
    %5 = tx.add %4, %3 : (tensor<8x6xbf16>, tensor<8x6xbf16>) -> tensor<8x6xbf16>
    return %5 : tensor<8x6xbf16>
  }
}
