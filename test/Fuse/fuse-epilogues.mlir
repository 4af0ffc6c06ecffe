// RUN: partita-opt %s --fuse-epilogues | FileCheck %s
// RUN: partita-opt %s --fuse-epilogues -o %t.mlir
// RUN: bash %S/equal.sh %s %t.mlir gelu flat scaled forward scaled_forward slope slope_bias slope_wide bias_gradient first_operand alone erf arithmetic other_cotangent wide needed
// RUN: partita-opt %s --fuse-epilogues --plan-memory --lower-to-rt | FileCheck %s --check-prefix=RT
// The CPU's runtime has no such kernels.
// RUN: sed '/^module/s/cuda/cpu/' %s | partita-opt --fuse-epilogues | FileCheck %s --check-prefix=CPU --implicit-check-not=fused_matmul
// CPU: func.func @gelu
// RUN: sed '/^module/s/cuda/cpu/' %t.mlir | not partita-opt --plan-memory --lower-to-rt 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: 'tx.fused_matmul' op has no kernel on the target 'cpu'

module attributes {rt.target = "cuda"} {
  // CHECK-LABEL: func.func @gelu(
  // CHECK: %[[F:.*]]:2 = tx.fused_matmul (%[[A:.*]] = %arg0, %[[W:.*]] = %arg1, %[[B:.*]] = %arg2) : {{.*}} {
  // CHECK-NEXT:   %[[PRE:.*]] = tx.matmul_bias %[[A]], %[[W]] plus %[[B]]
  // CHECK-NEXT:   %[[Y:.*]] = tx.gelu_tanh %[[PRE]]
  // CHECK-NEXT:   tx.fused %[[Y]], %[[PRE]]
  // CHECK: return %[[F]]#0, %[[F]]#1
  // RT-LABEL: func.func @gelu(
  // RT: rt.gemm_bias_gelu {{.*}} {k = 4 : i64, ldAux = 6 : i64, lda = 4 : i64, ldb = 6 : i64, ldc = 6 : i64, m = 8 : i64, n = 6 : i64, transA = false, transB = false}
  func.func @gelu(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>, %b: tensor<6xf32>) -> (tensor<8x6xf32>, tensor<8x6xf32>) {
    %0 = tx.matmul %x, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %1 = tx.broadcast %b : tensor<6xf32> -> tensor<8x6xf32>
    %2 = tx.add %0, %1 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    %3 = tx.gelu_tanh %2 : (tensor<8x6xf32>) -> tensor<8x6xf32>
    return %3, %2 : tensor<8x6xf32>, tensor<8x6xf32>
  }

  // In another shape than the matmul's, of a weight that is stored transposed.
  // CHECK-LABEL: func.func @flat(
  // CHECK: %[[F:.*]]:2 = tx.fused_matmul
  // CHECK-NEXT: tx.matmul_nt_bias
  // CHECK: tx.reshape %[[F]]#0 : tensor<8x6xf16> -> tensor<2x4x6xf16>
  func.func @flat(%x: tensor<8x4xf16>, %w: tensor<6x4xf16>, %b: tensor<6xf16>) -> (tensor<2x4x6xf16>, tensor<8x6xf16>) {
    %0 = tx.matmul_nt %x, %w : (tensor<8x4xf16>, tensor<6x4xf16>) -> tensor<8x6xf16>
    %1 = tx.broadcast %b : tensor<6xf16> -> tensor<8x6xf16>
    %2 = tx.add %1, %0 : (tensor<8x6xf16>, tensor<8x6xf16>) -> tensor<8x6xf16>
    %3 = tx.reshape %2 : tensor<8x6xf16> -> tensor<2x4x6xf16>
    %4 = tx.gelu_tanh %3 : (tensor<2x4x6xf16>) -> tensor<2x4x6xf16>
    return %4, %2 : tensor<2x4x6xf16>, tensor<8x6xf16>
  }

  // With operands in 8 bits, the bias alone, which makes the argument that is needed in any case.
  // CHECK-LABEL: func.func @scaled(
  // CHECK: %[[PRE:.*]] = tx.scaled_matmul_nt_bias
  // CHECK-NEXT: %[[Y:.*]] = tx.gelu_tanh %[[PRE]]
  // CHECK-NEXT: return %[[Y]], %[[PRE]]
  func.func @scaled(%x: tensor<8x4xf8E4M3FN>, %w: tensor<6x4xf8E4M3FN>, %scales: tensor<2x1xf32>, %b: tensor<6xbf16>) -> (tensor<8x6xbf16>, tensor<8x6xbf16>) {
    %0 = tx.scaled_matmul_nt %x, %w scaled by %scales[0, 1] : (tensor<8x4xf8E4M3FN>, tensor<6x4xf8E4M3FN>, tensor<2x1xf32>) -> tensor<8x6xbf16>
    %1 = tx.broadcast %b : tensor<6xbf16> -> tensor<8x6xbf16>
    %2 = tx.add %0, %1 : (tensor<8x6xbf16>, tensor<8x6xbf16>) -> tensor<8x6xbf16>
    %3 = tx.gelu_tanh %2 : (tensor<8x6xbf16>) -> tensor<8x6xbf16>
    return %3, %2 : tensor<8x6xbf16>, tensor<8x6xbf16>
  }

  // CHECK-LABEL: func.func @slope(
  // CHECK: tx.fused_matmul (%[[G:.*]] = %arg0, %[[W:.*]] = %arg1, %[[PRE:.*]] = %arg2) : {{.*}} {
  // CHECK-NEXT:   %[[DY:.*]] = tx.matmul_nt %[[G]], %[[W]]
  // CHECK-NEXT:   %[[DX:.*]] = tx.gelu_tanh_grad %[[PRE]], %[[DY]]
  // CHECK-NEXT:   tx.fused %[[DX]]
  // RT-LABEL: func.func @slope(
  // RT: rt.gemm_gelu_grad {{.*}} {k = 4 : i64, ldAux = 6 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 6 : i64, m = 8 : i64, n = 6 : i64, transA = false, transB = true}
  func.func @slope(%g: tensor<8x4xf32>, %w: tensor<6x4xf32>, %x: tensor<8x6xf32>) -> tensor<8x6xf32> {
    %0 = tx.matmul_nt %g, %w : (tensor<8x4xf32>, tensor<6x4xf32>) -> tensor<8x6xf32>
    %1 = tx.gelu_tanh_grad %x, %0 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    return %1 : tensor<8x6xf32>
  }

  // The gradient of the bias in front of the GELU: with the slope, not with the gradient of the weight.
  // CHECK-LABEL: func.func @slope_bias(
  // CHECK: %[[F:.*]]:2 = tx.fused_matmul (%[[G:.*]] = %arg0, %[[W:.*]] = %arg1, %[[PRE:.*]] = %arg2) : {{.*}} {
  // CHECK-NEXT:   %[[DY:.*]] = tx.matmul_nt %[[G]], %[[W]]
  // CHECK-NEXT:   %[[DX:.*]] = tx.gelu_tanh_grad %[[PRE]], %[[DY]]
  // CHECK-NEXT:   %[[DB:.*]] = tx.reduce_sum %[[DX]] [0, 1]
  // CHECK-NEXT:   tx.fused %[[DX]], %[[DB]]
  // CHECK: %[[FLAT:.*]] = tx.reshape %[[F]]#0
  // CHECK: %[[DW:.*]] = tx.matmul_tn %{{.*}}, %[[FLAT]]
  // CHECK: return %[[F]]#0, %[[DW]], %[[F]]#1
  // RT-LABEL: func.func @slope_bias(
  // RT: rt.gemm_gelu_grad %{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}} {k = 4 : i64, ldAux = 6 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 6 : i64, m = 8 : i64, n = 6 : i64, transA = false, transB = true}
  func.func @slope_bias(%g: tensor<2x4x4xf32>, %w: tensor<6x4xf32>, %x: tensor<2x4x6xf32>, %in: tensor<8x3xf32>) -> (tensor<2x4x6xf32>, tensor<3x6xf32>, tensor<6xf32>) {
    %0 = tx.matmul_nt %g, %w : (tensor<2x4x4xf32>, tensor<6x4xf32>) -> tensor<2x4x6xf32>
    %1 = tx.gelu_tanh_grad %x, %0 : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
    %2 = tx.reshape %1 : tensor<2x4x6xf32> -> tensor<8x6xf32>
    %3 = tx.matmul_tn %in, %2 : (tensor<8x3xf32>, tensor<8x6xf32>) -> tensor<3x6xf32>
    %4 = tx.reduce_sum %2 [0] : tensor<8x6xf32> -> tensor<6xf32>
    return %1, %3, %4 : tensor<2x4x6xf32>, tensor<3x6xf32>, tensor<6xf32>
  }

  // 16-bit sums that are added in 32 bits: with the gradient of the weight, which need not round them before (fuse-accumulation).
  // CHECK-LABEL: func.func @slope_wide(
  // CHECK: tx.gelu_tanh_grad
  // CHECK-NEXT: tx.fused
  // CHECK: tx.matmul_tn
  // CHECK-NEXT: tx.reduce_sum
  func.func @slope_wide(%g: tensor<8x4xbf16>, %w: tensor<6x4xbf16>, %x: tensor<8x6xbf16>, %in: tensor<8x3xbf16>, %sum: tensor<6xf32>) -> (tensor<3x6xbf16>, tensor<6xf32>) {
    %0 = tx.matmul_nt %g, %w : (tensor<8x4xbf16>, tensor<6x4xbf16>) -> tensor<8x6xbf16>
    %1 = tx.gelu_tanh_grad %x, %0 : (tensor<8x6xbf16>, tensor<8x6xbf16>) -> tensor<8x6xbf16>
    %2 = tx.matmul_tn %in, %1 : (tensor<8x3xbf16>, tensor<8x6xbf16>) -> tensor<3x6xbf16>
    %3 = tx.reduce_sum %1 [0] : tensor<8x6xbf16> -> tensor<6xbf16>
    %4 = tx.cast %3 : tensor<6xbf16> -> tensor<6xf32>
    %5 = tx.add %sum, %4 : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
    return %2, %5 : tensor<3x6xbf16>, tensor<6xf32>
  }

  // Where the first of the two stood; what is summed up is the matmul's operand, in the shape that the matmul has it in.
  // CHECK-LABEL: func.func @bias_gradient(
  // CHECK: %[[DY:.*]] = tx.reshape %arg1
  // CHECK-NEXT: %[[F:.*]]:2 = tx.fused_matmul (%[[X:.*]] = %arg0, %[[B:.*]] = %[[DY]]) : {{.*}} {
  // CHECK-NEXT:   %[[DW:.*]] = tx.matmul_tn %[[X]], %[[B]]
  // CHECK-NEXT:   %[[DB:.*]] = tx.reduce_sum %[[B]] [0]
  // CHECK-NEXT:   tx.fused %[[DW]], %[[DB]]
  // CHECK: tx.neg
  // RT-LABEL: func.func @bias_gradient(
  // RT: rt.gemm_bias_grad {{.*}} {add = false, cotangentIsA = false, k = 8 : i64, lda = 4 : i64, ldb = 6 : i64, ldc = 6 : i64, m = 4 : i64, n = 6 : i64}
  func.func @bias_gradient(%x: tensor<8x4xf32>, %dy: tensor<2x4x6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
    %0 = tx.reshape %dy : tensor<2x4x6xf32> -> tensor<8x6xf32>
    %1 = tx.reduce_sum %dy [0, 1] : tensor<2x4x6xf32> -> tensor<6xf32>
    %2 = tx.neg %1 : (tensor<6xf32>) -> tensor<6xf32>
    %3 = tx.matmul_tn %x, %0 : (tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
    return %3, %2 : tensor<4x6xf32>, tensor<6xf32>
  }

  // A weight that is stored transposed: the cotangent is the first operand.
  // CHECK-LABEL: func.func @first_operand(
  // CHECK: tx.fused_matmul
  // RT-LABEL: func.func @first_operand(
  // RT: rt.gemm_bias_grad {{.*}} {add = false, cotangentIsA = true,
  func.func @first_operand(%x: tensor<8x4xf32>, %dy: tensor<8x6xf32>) -> (tensor<6x4xf32>, tensor<6xf32>) {
    %0 = tx.matmul_tn %dy, %x : (tensor<8x6xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
    %1 = tx.reduce_sum %dy [0] : tensor<8x6xf32> -> tensor<6xf32>
    return %0, %1 : tensor<6x4xf32>, tensor<6xf32>
  }

  // Without a backward pass, the GELU alone; of operands in 8 bits (fuse-elementwise: one loop) none.
  // CHECK-LABEL: func.func @forward(
  // CHECK: %[[F:.*]] = tx.fused_matmul (%[[A:.*]] = %arg0, %[[W:.*]] = %arg1, %[[B:.*]] = %arg2) : {{.*}} {
  // CHECK-NEXT:   %[[PRE:.*]] = tx.matmul_bias %[[A]], %[[W]] plus %[[B]]
  // CHECK-NEXT:   %[[Y:.*]] = tx.gelu_tanh %[[PRE]]
  // CHECK-NEXT:   tx.fused %[[Y]]
  // CHECK-NEXT: }
  // CHECK-NEXT: %[[Y:.*]] = tx.reshape %[[F]]
  // CHECK-NEXT: return %[[Y]]
  // RT-LABEL: func.func @forward(
  // RT: rt.gemm_bias_gelu %{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}} {k = 4 : i64, ldAux = 0 : i64, lda = 4 : i64, ldb = 6 : i64, ldc = 6 : i64, m = 8 : i64, n = 6 : i64, transA = false, transB = false}
  func.func @forward(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>, %b: tensor<6xf32>) -> tensor<2x4x6xf32> {
    %0 = tx.matmul %x, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %1 = tx.broadcast %b : tensor<6xf32> -> tensor<8x6xf32>
    %2 = tx.add %0, %1 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    %3 = tx.reshape %2 : tensor<8x6xf32> -> tensor<2x4x6xf32>
    %4 = tx.gelu_tanh %3 : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
    return %4 : tensor<2x4x6xf32>
  }

  // CHECK-LABEL: func.func @scaled_forward(
  // CHECK: tx.scaled_matmul_nt {{.*}} -> tensor<8x6xbf16>
  // CHECK-NEXT: tx.broadcast
  // CHECK-NEXT: tx.add
  func.func @scaled_forward(%x: tensor<8x4xf8E4M3FN>, %w: tensor<6x4xf8E4M3FN>, %scales: tensor<2x1xf32>, %b: tensor<6xbf16>) -> tensor<8x6xbf16> {
    %0 = tx.scaled_matmul_nt %x, %w scaled by %scales[0, 1] : (tensor<8x4xf8E4M3FN>, tensor<6x4xf8E4M3FN>, tensor<2x1xf32>) -> tensor<8x6xbf16>
    %1 = tx.broadcast %b : tensor<6xbf16> -> tensor<8x6xbf16>
    %2 = tx.add %0, %1 : (tensor<8x6xbf16>, tensor<8x6xbf16>) -> tensor<8x6xbf16>
    %3 = tx.gelu_tanh %2 : (tensor<8x6xbf16>) -> tensor<8x6xbf16>
    return %3 : tensor<8x6xbf16>
  }

  // The matmul is used by others too, or what is added is no row.
  // CHECK-LABEL: func.func @alone(
  // CHECK-NOT: tx.fused_matmul
  func.func @alone(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>, %b: tensor<6xf32>, %c: tensor<8x6xf32>) -> (tensor<8x6xf32>, tensor<8x6xf32>, tensor<8x6xf32>, tensor<8x6xf32>) {
    %1 = tx.broadcast %b : tensor<6xf32> -> tensor<8x6xf32>
    %4 = tx.matmul %x, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %5 = tx.add %4, %c : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    %6 = tx.gelu_tanh %5 : (tensor<8x6xf32>) -> tensor<8x6xf32>
    %7 = tx.add %4, %1 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    %8 = tx.gelu_tanh %7 : (tensor<8x6xf32>) -> tensor<8x6xf32>
    return %5, %6, %7, %8 : tensor<8x6xf32>, tensor<8x6xf32>, tensor<8x6xf32>, tensor<8x6xf32>
  }

  // Another GELU.
  // CHECK-LABEL: func.func @erf(
  // CHECK-NOT: tx.fused_matmul
  func.func @erf(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>, %b: tensor<6xf32>, %dy: tensor<8x4xf32>) -> (tensor<8x6xf32>, tensor<8x6xf32>) {
    %0 = tx.matmul %x, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %1 = tx.broadcast %b : tensor<6xf32> -> tensor<8x6xf32>
    %2 = tx.add %0, %1 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    %3 = tx.gelu %2 : (tensor<8x6xf32>) -> tensor<8x6xf32>
    %4 = tx.matmul %dy, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %5 = tx.gelu_grad %2, %4 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    return %3, %5 : tensor<8x6xf32>, tensor<8x6xf32>
  }

  // More arithmetic follows, here a gate's: all of it is one loop. A cotangent that others read too stays as well.
  // CHECK-LABEL: func.func @arithmetic(
  // CHECK-NOT: tx.fused_matmul
  func.func @arithmetic(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>, %b: tensor<6xf32>, %gate: tensor<8x6xf32>) -> (tensor<8x6xf32>, tensor<8x6xf32>, tensor<8x6xf32>, tensor<8x6xf32>, tensor<8x6xf32>) {
    %0 = tx.matmul %x, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %1 = tx.broadcast %b : tensor<6xf32> -> tensor<8x6xf32>
    %2 = tx.add %0, %1 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    %3 = tx.gelu_tanh %2 : (tensor<8x6xf32>) -> tensor<8x6xf32>
    %4 = tx.mul %3, %gate : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    %5 = tx.matmul %x, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %6 = tx.gelu_tanh_grad %gate, %5 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    %7 = tx.matmul %x, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %8 = tx.gelu_tanh_grad %gate, %7 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    %9 = tx.neg %8 : (tensor<8x6xf32>) -> tensor<8x6xf32>
    return %2, %4, %5, %6, %9 : tensor<8x6xf32>, tensor<8x6xf32>, tensor<8x6xf32>, tensor<8x6xf32>, tensor<8x6xf32>
  }

  // The sum of another cotangent, of columns, or of a part of the rows.
  // CHECK-LABEL: func.func @other_cotangent(
  // CHECK-NOT: tx.fused_matmul
  func.func @other_cotangent(%x: tensor<8x4xf32>, %dy: tensor<8x8xf32>, %dz: tensor<8x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<2x8xf32>) {
    %0 = tx.matmul_tn %x, %dy : (tensor<8x4xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %1 = tx.reduce_sum %dz [0] : tensor<8x8xf32> -> tensor<8xf32>
    %2 = tx.reduce_sum %dy [1] : tensor<8x8xf32> -> tensor<8xf32>
    %3 = tx.reshape %dy : tensor<8x8xf32> -> tensor<2x4x8xf32>
    %4 = tx.reduce_sum %3 [1] : tensor<2x4x8xf32> -> tensor<2x8xf32>
    return %0, %1, %2, %4 : tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<2x8xf32>
  }

  // A kernel has one type of gradients.
  // CHECK-LABEL: func.func @wide(
  // CHECK-NOT: tx.fused_matmul
  func.func @wide(%x: tensor<8x4xbf16>, %dy: tensor<8x6xbf16>) -> (tensor<4x6xbf16>, tensor<6xf32>) {
    %0 = tx.cast %dy : tensor<8x6xbf16> -> tensor<8x6xf32>
    %1 = tx.reduce_sum %0 [0] : tensor<8x6xf32> -> tensor<6xf32>
    %2 = tx.matmul_tn %x, %dy : (tensor<8x4xbf16>, tensor<8x6xbf16>) -> tensor<4x6xbf16>
    return %2, %1 : tensor<4x6xbf16>, tensor<6xf32>
  }

  // The matmul can only be made of what becomes of the sum.
  // CHECK-LABEL: func.func @needed(
  // CHECK-NOT: tx.fused_matmul
  func.func @needed(%dy: tensor<8x6xf32>) -> (tensor<6x6xf32>, tensor<6xf32>) {
    %0 = tx.reduce_sum %dy [0] : tensor<8x6xf32> -> tensor<6xf32>
    %1 = tx.broadcast %0 : tensor<6xf32> -> tensor<8x6xf32>
    %2 = tx.matmul_tn %1, %dy : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<6x6xf32>
    return %2, %0 : tensor<6x6xf32>, tensor<6xf32>
  }
}
