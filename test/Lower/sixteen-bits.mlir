// RUN: partita-opt %s --plan-memory --lower-to-rt | FileCheck %s

// A loop of 16-bit numbers computes in floats. What it stores its other ops see rounded, as everybody else does; what it does not, they
// do not: so each value is one number.
// CHECK-DAG: rt.kernel @map_add_gelu_neg loops 1 outputs ["out0", "out1"] [bf16, f32] inputs ["a", "b"] [bf16, bf16] steps [1, 1, 1, 1] locals ["const float t0 = float(BFloat16(float($a) + float($b)));", "const float t1 = 0.5f * t0 * (1.0f + erff(t0 * 0.70710677f));", "const float t2 = -t1;"] computes ["t0", "t2"]
// CHECK-DAG: rt.kernel @map_cast loops 1 outputs ["out"] [f16] inputs ["x"] [f32] steps [1, 1] locals [] computes ["$x"]

// CHECK-LABEL: func.func @loop
func.func @loop(%x: tensor<4xbf16>, %y: tensor<4xbf16>) -> (tensor<4xbf16>, tensor<4xf32>) {
  // CHECK: rt.launch @map_add_gelu_neg
  %0, %1 = tx.fusion (%a = %x, %b = %y) : (tensor<4xbf16>, tensor<4xbf16>) -> (tensor<4xbf16>, tensor<4xf32>) {
    %2 = tx.add %a, %b : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xbf16>
    %3 = tx.gelu %2 : (tensor<4xbf16>) -> tensor<4xbf16>
    %4 = tx.cast %3 : tensor<4xbf16> -> tensor<4xf32>
    %5 = tx.neg %4 : (tensor<4xf32>) -> tensor<4xf32>
    tx.fused %2, %5 : tensor<4xbf16>, tensor<4xf32>
  }
  return %0, %1 : tensor<4xbf16>, tensor<4xf32>
}

// CHECK-LABEL: func.func @cast
func.func @cast(%x: tensor<4xf32>) -> tensor<4xf16> {
  // CHECK: rt.launch @map_cast
  %0 = tx.cast %x : tensor<4xf32> -> tensor<4xf16>
  return %0 : tensor<4xf16>
}

// The gradient of attention's bias is added up in floats, after the kernel's own scratch memory (delta of 2 x 4 queries and the sums of
// their dq, 4 rows of 16), and rounded once; one that nobody uses has no sums.
!heads = tensor<1x4x2x8xbf16>
!bias = tensor<1x2x4x4xbf16>
// CHECK-LABEL: func.func @bias
func.func @bias(%q: !heads, %k: !heads, %v: !heads, %out: !heads, %lse: tensor<1x2x4xf32>, %dout: !heads, %bias: !bias) -> (!heads, !heads, !bias) {
  // CHECK: %[[DBIAS:.*]] = rt.arena {{[0-9]+}} [1, 2, 4, 4]{{.*}} : <bf16>
  // CHECK: %[[SUMS:.*]] = rt.arena 288 [32]{{.*}} : <f32>
  // CHECK: %[[SCRATCH:.*]] = rt.arena 0 [104]{{.*}} : <f32>
  // CHECK: rt.attention_backward {{.*}}, %[[SUMS]], %[[SCRATCH]],
  // CHECK-NEXT: rt.launch @map_cast_2(%[[DBIAS]], %[[SUMS]]) [32] []{{.*}} : !rt.buffer<bf16>, !rt.buffer<f32>
  %0:4 = tx.attention_grad %q, %k, %v, %out, %lse, %dout bias %bias scale 0.5 : (!heads, !heads, !heads, !heads, tensor<1x2x4xf32>, !heads, !bias) -> (!heads, !heads, !heads, !bias)
  // CHECK: rt.arena {{[0-9]+}} [72]{{.*}} : <f32>
  // CHECK-NOT: rt.launch
  // CHECK: return
  %1:4 = tx.attention_grad %q, %k, %v, %out, %lse, %dout bias %bias scale 0.5 causal : (!heads, !heads, !heads, !heads, tensor<1x2x4xf32>, !heads, !bias) -> (!heads, !heads, !heads, !bias)
  return %0#0, %1#0, %0#3 : !heads, !heads, !bias
}
