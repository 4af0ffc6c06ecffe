// RUN: partita-opt %s --pass-pipeline='builtin.module(func.func(raise-attention{remarks},canonicalize))' --split-input-file --verify-diagnostics | FileCheck %s

// GPT-2, eager: k^T by one transpose, the scale a division, the mask selected from a table of
// comparisons, and transposes on all sides.
// CHECK-LABEL: @eager(
// CHECK-SAME:    %[[Q:.*]]: tensor<2x4x3x16xf32>, %[[K:.*]]: tensor<2x4x3x16xf32>, %[[V:.*]]: tensor<2x4x3x16xf32>
// CHECK-NEXT:    %[[O:.*]], %{{.*}} = tx.attention %[[Q]], %[[K]], %[[V]] scale 2.500000e-01 causal
// CHECK-NEXT:    return %[[O]]
func.func @eager(%q: tensor<2x4x3x16xf32>, %k: tensor<2x4x3x16xf32>, %v: tensor<2x4x3x16xf32>) -> tensor<2x4x3x16xf32> {
  %four = tx.constant dense<4.0> : tensor<2x3x4x4xf32> : tensor<2x3x4x4xf32>
  %lowest = tx.constant dense<-3.40282347E+38> : tensor<2x3x4x4xf32> : tensor<2x3x4x4xf32>
  %i = tx.iota 0.0, 1.0 : tensor<4xi64>
  %row = tx.reshape %i : tensor<4xi64> -> tensor<4x1xi64>
  %rows = tx.broadcast %row : tensor<4x1xi64> -> tensor<4x4xi64>
  %cols = tx.broadcast %i : tensor<4xi64> -> tensor<4x4xi64>
  %tril = tx.less_equal %cols, %rows : (tensor<4x4xi64>, tensor<4x4xi64>) -> tensor<4x4xi1>
  %mask = tx.broadcast %tril : tensor<4x4xi1> -> tensor<2x3x4x4xi1>
  %qt = tx.transpose %q [0, 2, 1, 3] : tensor<2x4x3x16xf32> -> tensor<2x3x4x16xf32>
  %kt = tx.transpose %k [0, 2, 3, 1] : tensor<2x4x3x16xf32> -> tensor<2x3x16x4xf32>
  %vt = tx.transpose %v [0, 2, 1, 3] : tensor<2x4x3x16xf32> -> tensor<2x3x4x16xf32>
  %s = tx.batch_matmul %qt, %kt : (tensor<2x3x4x16xf32>, tensor<2x3x16x4xf32>) -> tensor<2x3x4x4xf32>
  %scaled = tx.div %s, %four : (tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32>
  %masked = tx.select %mask, %scaled, %lowest : (tensor<2x3x4x4xi1>, tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32>
  %p = tx.softmax %masked : (tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32>
  // expected-remark@+1 {{raised to tx.attention}}
  %o = tx.batch_matmul %p, %vt : (tensor<2x3x4x4xf32>, tensor<2x3x4x16xf32>) -> tensor<2x3x4x16xf32>
  %ot = tx.transpose %o [0, 2, 1, 3] : tensor<2x3x4x16xf32> -> tensor<2x4x3x16xf32>
  return %ot : tensor<2x4x3x16xf32>
}

// -----

// scaled_dot_product_attention: half the scale on q and k each, k^T over merged batch and heads, an
// added mask, and a guard against rows without a visible key. q, k and v are pieces of one projection.
// CHECK-LABEL: @sdpa(
// CHECK-NEXT:    tx.slice
// CHECK-NEXT:    tx.slice
// CHECK-NEXT:    tx.slice
// CHECK-NEXT:    %[[Q:.*]] = tx.reshape
// CHECK-NEXT:    %[[K:.*]] = tx.reshape
// CHECK-NEXT:    %[[V:.*]] = tx.reshape
// CHECK-NEXT:    %[[O:.*]], %{{.*}} = tx.attention %[[Q]], %[[K]], %[[V]] scale 2.500000e-01 causal
// CHECK-NEXT:    tx.reshape %[[O]] : tensor<2x4x3x16xf32> -> tensor<8x48xf32>
func.func @sdpa(%qkv: tensor<2x4x144xf32>) -> tensor<8x48xf32> {
  %half = tx.constant dense<0.5> : tensor<2x3x4x16xf32> : tensor<2x3x4x16xf32>
  %halfk = tx.constant dense<0.5> : tensor<2x3x16x4xf32> : tensor<2x3x16x4xf32>
  %zero = tx.constant dense<0.0> : tensor<2x3x4x4xf32> : tensor<2x3x4x4xf32>
  %m = tx.constant dense<[[[[0.0, -3.4e+38, -3.4e+38, -3.4e+38], [0.0, 0.0, -3.4e+38, -3.4e+38], [0.0, 0.0, 0.0, -3.4e+38], [0.0, 0.0, 0.0, 0.0]]]]> : tensor<1x1x4x4xf32> : tensor<1x1x4x4xf32>
  %mask = tx.broadcast %m : tensor<1x1x4x4xf32> -> tensor<2x3x4x4xf32>
  %qs = tx.slice %qkv [0, 0, 0] by [1, 1, 1] : tensor<2x4x144xf32> -> tensor<2x4x48xf32>
  %ks = tx.slice %qkv [0, 0, 48] by [1, 1, 1] : tensor<2x4x144xf32> -> tensor<2x4x48xf32>
  %vs = tx.slice %qkv [0, 0, 96] by [1, 1, 1] : tensor<2x4x144xf32> -> tensor<2x4x48xf32>
  %q = tx.reshape %qs : tensor<2x4x48xf32> -> tensor<2x4x3x16xf32>
  %k = tx.reshape %ks : tensor<2x4x48xf32> -> tensor<2x4x3x16xf32>
  %v = tx.reshape %vs : tensor<2x4x48xf32> -> tensor<2x4x3x16xf32>
  %qt = tx.transpose %q [0, 2, 1, 3] : tensor<2x4x3x16xf32> -> tensor<2x3x4x16xf32>
  %kt = tx.transpose %k [0, 2, 1, 3] : tensor<2x4x3x16xf32> -> tensor<2x3x4x16xf32>
  %vt = tx.transpose %v [0, 2, 1, 3] : tensor<2x4x3x16xf32> -> tensor<2x3x4x16xf32>
  %k3 = tx.reshape %kt : tensor<2x3x4x16xf32> -> tensor<6x4x16xf32>
  %k3t = tx.transpose %k3 [0, 2, 1] : tensor<6x4x16xf32> -> tensor<6x16x4xf32>
  %k4 = tx.reshape %k3t : tensor<6x16x4xf32> -> tensor<2x3x16x4xf32>
  %qh = tx.mul %qt, %half : (tensor<2x3x4x16xf32>, tensor<2x3x4x16xf32>) -> tensor<2x3x4x16xf32>
  %kh = tx.mul %k4, %halfk : (tensor<2x3x16x4xf32>, tensor<2x3x16x4xf32>) -> tensor<2x3x16x4xf32>
  %s = tx.batch_matmul %qh, %kh : (tensor<2x3x4x16xf32>, tensor<2x3x16x4xf32>) -> tensor<2x3x4x4xf32>
  %masked = tx.add %s, %mask : (tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32>
  %p = tx.softmax %masked : (tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32>
  %nan = tx.is_nan %p : (tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xi1>
  %pg = tx.select %nan, %zero, %p : (tensor<2x3x4x4xi1>, tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32>
  // expected-remark@+1 {{raised to tx.attention}}
  %o = tx.batch_matmul %pg, %vt : (tensor<2x3x4x4xf32>, tensor<2x3x4x16xf32>) -> tensor<2x3x4x16xf32>
  %ot = tx.transpose %o [0, 2, 1, 3] : tensor<2x3x4x16xf32> -> tensor<2x4x3x16xf32>
  %y = tx.reshape %ot : tensor<2x4x3x16xf32> -> tensor<8x48xf32>
  return %y : tensor<8x48xf32>
}

// -----

// The first generation: score * mask - 1e4 (1 - mask), all in [batch * heads, ...].
// CHECK-LABEL: @minus_ten_thousand(
// CHECK-SAME:    %[[Q:.*]]: tensor<2x4x3x8xf32>, %[[K:.*]]: tensor<2x4x3x8xf32>, %[[V:.*]]: tensor<2x4x3x5xf32>
// CHECK-NEXT:    %[[O:.*]], %{{.*}} = tx.attention %[[Q]], %[[K]], %[[V]] scale 5.000000e-01 causal
// CHECK-NEXT:    return %[[O]]
func.func @minus_ten_thousand(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x3x8xf32>, %v: tensor<2x4x3x5xf32>) -> tensor<2x4x3x5xf32> {
  %half = tx.constant dense<0.5> : tensor<6x4x4xf32> : tensor<6x4x4xf32>
  %one = tx.constant dense<1.0> : tensor<6x4x4xf32> : tensor<6x4x4xf32>
  %large = tx.constant dense<1.0e4> : tensor<6x4x4xf32> : tensor<6x4x4xf32>
  %tril = tx.constant dense<[[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0]]> : tensor<4x4xf32> : tensor<4x4xf32>
  %mask = tx.broadcast %tril : tensor<4x4xf32> -> tensor<6x4x4xf32>
  %qt = tx.transpose %q [0, 2, 1, 3] : tensor<2x4x3x8xf32> -> tensor<2x3x4x8xf32>
  %kt = tx.transpose %k [0, 2, 3, 1] : tensor<2x4x3x8xf32> -> tensor<2x3x8x4xf32>
  %vt = tx.transpose %v [0, 2, 1, 3] : tensor<2x4x3x5xf32> -> tensor<2x3x4x5xf32>
  %q3 = tx.reshape %qt : tensor<2x3x4x8xf32> -> tensor<6x4x8xf32>
  %k3 = tx.reshape %kt : tensor<2x3x8x4xf32> -> tensor<6x8x4xf32>
  %v3 = tx.reshape %vt : tensor<2x3x4x5xf32> -> tensor<6x4x5xf32>
  %s = tx.batch_matmul %q3, %k3 : (tensor<6x4x8xf32>, tensor<6x8x4xf32>) -> tensor<6x4x4xf32>
  %scaled = tx.mul %half, %s : (tensor<6x4x4xf32>, tensor<6x4x4xf32>) -> tensor<6x4x4xf32>
  %kept = tx.mul %scaled, %mask : (tensor<6x4x4xf32>, tensor<6x4x4xf32>) -> tensor<6x4x4xf32>
  %other = tx.sub %one, %mask : (tensor<6x4x4xf32>, tensor<6x4x4xf32>) -> tensor<6x4x4xf32>
  %low = tx.mul %other, %large : (tensor<6x4x4xf32>, tensor<6x4x4xf32>) -> tensor<6x4x4xf32>
  %masked = tx.sub %kept, %low : (tensor<6x4x4xf32>, tensor<6x4x4xf32>) -> tensor<6x4x4xf32>
  %p = tx.softmax %masked : (tensor<6x4x4xf32>) -> tensor<6x4x4xf32>
  // expected-remark@+1 {{raised to tx.attention}}
  %o3 = tx.batch_matmul %p, %v3 : (tensor<6x4x4xf32>, tensor<6x4x5xf32>) -> tensor<6x4x5xf32>
  %o = tx.reshape %o3 : tensor<6x4x5xf32> -> tensor<2x3x4x5xf32>
  %ot = tx.transpose %o [0, 2, 1, 3] : tensor<2x3x4x5xf32> -> tensor<2x4x3x5xf32>
  return %ot : tensor<2x4x3x5xf32>
}

// -----

// No mask, no transposes to absorb (new ones say so), no scale.
// CHECK-LABEL: @bidirectional(
// CHECK-COUNT-3: tx.transpose
// CHECK-NEXT:    tx.attention %{{.*}}, %{{.*}}, %{{.*}} scale 1.000000e+00 :
// CHECK-NEXT:    tx.transpose
// CHECK-NEXT:    return
func.func @bidirectional(%q: tensor<1x2x3x8xf32>, %k: tensor<1x2x8x5xf32>, %v: tensor<1x2x5x8xf32>) -> tensor<1x2x3x8xf32> {
  %s = tx.batch_matmul %q, %k : (tensor<1x2x3x8xf32>, tensor<1x2x8x5xf32>) -> tensor<1x2x3x5xf32>
  %p = tx.softmax %s : (tensor<1x2x3x5xf32>) -> tensor<1x2x3x5xf32>
  // expected-remark@+1 {{raised to tx.attention}}
  %o = tx.batch_matmul %p, %v : (tensor<1x2x3x5xf32>, tensor<1x2x5x8xf32>) -> tensor<1x2x3x8xf32>
  return %o : tensor<1x2x3x8xf32>
}

// -----

// One key too many is visible.
// CHECK-LABEL: @not_triangular(
// CHECK-NOT:     tx.attention
func.func @not_triangular(%q: tensor<1x2x3x8xf32>, %k: tensor<1x2x8x3xf32>, %v: tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32> {
  %m = tx.constant dense<[[0.0, -1.0e9, 0.0], [0.0, 0.0, -1.0e9], [0.0, 0.0, 0.0]]> : tensor<3x3xf32> : tensor<3x3xf32>
  %mask = tx.broadcast %m : tensor<3x3xf32> -> tensor<1x2x3x3xf32>
  %s = tx.batch_matmul %q, %k : (tensor<1x2x3x8xf32>, tensor<1x2x8x3xf32>) -> tensor<1x2x3x3xf32>
  %masked = tx.add %s, %mask : (tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  // expected-remark@+1 {{nearly attention: its mask is not lower triangular at (0, 2), where the key is visible}}
  %p = tx.softmax %masked : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %o = tx.batch_matmul %p, %v : (tensor<1x2x3x3xf32>, tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32>
  return %o : tensor<1x2x3x8xf32>
}

// -----

// A bias per head (ALiBi) is no mask.
// CHECK-LABEL: @bias_per_head(
// CHECK-NOT:     tx.attention
func.func @bias_per_head(%q: tensor<1x2x3x8xf32>, %k: tensor<1x2x8x3xf32>, %v: tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32> {
  %b = tx.constant dense<[[[0.0, 0.0, 0.0]], [[-0.5, -0.25, 0.0]]]> : tensor<2x1x3xf32> : tensor<2x1x3xf32>
  %bias = tx.broadcast %b : tensor<2x1x3xf32> -> tensor<1x2x3x3xf32>
  %s = tx.batch_matmul %q, %k : (tensor<1x2x3x8xf32>, tensor<1x2x8x3xf32>) -> tensor<1x2x3x3xf32>
  %biased = tx.add %s, %bias : (tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  // expected-remark@+1 {{nearly attention: at (0, 0) the score is scaled by 1 and -0.5 is added; elsewhere the scale is 1}}
  %p = tx.softmax %biased : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %o = tx.batch_matmul %p, %v : (tensor<1x2x3x3xf32>, tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32>
  return %o : tensor<1x2x3x8xf32>
}

// -----

// A mask that is an input cannot be checked.
// CHECK-LABEL: @mask_from_input(
// CHECK-NOT:     tx.attention
func.func @mask_from_input(%q: tensor<1x2x3x8xf32>, %k: tensor<1x2x8x3xf32>, %v: tensor<1x2x3x8xf32>, %mask: tensor<1x2x3x3xf32>) -> tensor<1x2x3x8xf32> {
  %s = tx.batch_matmul %q, %k : (tensor<1x2x3x8xf32>, tensor<1x2x8x3xf32>) -> tensor<1x2x3x3xf32>
  %masked = tx.add %s, %mask : (tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  // expected-remark@+1 {{nearly attention: its mask depends on an input}}
  %p = tx.softmax %masked : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %o = tx.batch_matmul %p, %v : (tensor<1x2x3x3xf32>, tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32>
  return %o : tensor<1x2x3x8xf32>
}

// -----

// Somebody else reads the weights: the matrix would have to be stored anyway.
// CHECK-LABEL: @weights_returned(
// CHECK-NOT:     tx.attention
func.func @weights_returned(%q: tensor<1x2x3x8xf32>, %k: tensor<1x2x8x3xf32>, %v: tensor<1x2x3x8xf32>) -> (tensor<1x2x3x8xf32>, tensor<1x2x3x3xf32>) {
  %s = tx.batch_matmul %q, %k : (tensor<1x2x3x8xf32>, tensor<1x2x8x3xf32>) -> tensor<1x2x3x3xf32>
  // expected-remark@+1 {{nearly attention: its weights have other users}}
  %p = tx.softmax %s : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %o = tx.batch_matmul %p, %v : (tensor<1x2x3x3xf32>, tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32>
  return %o, %p : tensor<1x2x3x8xf32>, tensor<1x2x3x3xf32>
}
