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
// added mask, and a guard against rows without a visible key. q, k and v are slices of one projection.
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

// One key too many is visible: no causal mask, so a bias.
// CHECK-LABEL: @not_triangular(
// CHECK:         tx.attention %{{.*}}, %{{.*}}, %{{.*}} bias %{{.*}} scale 1.000000e+00 :
func.func @not_triangular(%q: tensor<1x2x3x8xf32>, %k: tensor<1x2x8x3xf32>, %v: tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32> {
  %m = tx.constant dense<[[0.0, -1.0e9, 0.0], [0.0, 0.0, -1.0e9], [0.0, 0.0, 0.0]]> : tensor<3x3xf32> : tensor<3x3xf32>
  %mask = tx.broadcast %m : tensor<3x3xf32> -> tensor<1x2x3x3xf32>
  %s = tx.batch_matmul %q, %k : (tensor<1x2x3x8xf32>, tensor<1x2x8x3xf32>) -> tensor<1x2x3x3xf32>
  %masked = tx.add %s, %mask : (tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %p = tx.softmax %masked : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  // expected-remark@+1 {{raised to tx.attention}}
  %o = tx.batch_matmul %p, %v : (tensor<1x2x3x3xf32>, tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32>
  return %o : tensor<1x2x3x8xf32>
}

// -----

// A bias per head (ALiBi), known but no mask: it stays as small as it is.
// CHECK-LABEL: @bias_per_head(
// CHECK:         %[[B:.*]] = tx.constant dense<{{.*}}> : tensor<1x2x1x3xf32>
// CHECK:         tx.attention %{{.*}}, %{{.*}}, %{{.*}} bias %[[B]] scale 1.000000e+00 :
func.func @bias_per_head(%q: tensor<1x2x3x8xf32>, %k: tensor<1x2x8x3xf32>, %v: tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32> {
  %b = tx.constant dense<[[[0.0, 0.0, 0.0]], [[-0.5, -0.25, 0.0]]]> : tensor<2x1x3xf32> : tensor<2x1x3xf32>
  %bias = tx.broadcast %b : tensor<2x1x3xf32> -> tensor<1x2x3x3xf32>
  %s = tx.batch_matmul %q, %k : (tensor<1x2x3x8xf32>, tensor<1x2x8x3xf32>) -> tensor<1x2x3x3xf32>
  %biased = tx.add %s, %bias : (tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %p = tx.softmax %biased : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  // expected-remark@+1 {{raised to tx.attention}}
  %o = tx.batch_matmul %p, %v : (tensor<1x2x3x3xf32>, tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32>
  return %o : tensor<1x2x3x8xf32>
}

// -----

// BERT's padding mask, an input: it stays [batch, 1, 1, keys].
// CHECK-LABEL: @padding_mask(
// CHECK-SAME:    %[[Q:[a-z0-9]*]]: tensor<2x3x2x8xf32>, %[[K:[a-z0-9]*]]: tensor<2x3x2x8xf32>, %[[V:[a-z0-9]*]]: tensor<2x3x2x8xf32>
// CHECK:         %[[B:.*]] = tx.mul %{{.*}}, %{{.*}} : (tensor<2x1x1x3xf32>, tensor<2x1x1x3xf32>)
// CHECK-NEXT:    %[[O:.*]], %{{.*}} = tx.attention %[[Q]], %[[K]], %[[V]] bias %[[B]] scale 2.500000e-01 :
// CHECK-NEXT:    return %[[O]]
func.func @padding_mask(%q: tensor<2x3x2x8xf32>, %k: tensor<2x3x2x8xf32>, %v: tensor<2x3x2x8xf32>, %ids: tensor<2x3xi64>) -> tensor<2x3x2x8xf32> {
  %quarter = tx.constant dense<0.25> : tensor<2x2x3x3xf32> : tensor<2x2x3x3xf32>
  %one = tx.constant dense<1.0> : tensor<2x1x1x3xf32> : tensor<2x1x1x3xf32>
  %lowest = tx.constant dense<-3.40282347E+38> : tensor<2x1x1x3xf32> : tensor<2x1x1x3xf32>
  %m = tx.reshape %ids : tensor<2x3xi64> -> tensor<2x1x1x3xi64>
  %f = tx.cast %m : tensor<2x1x1x3xi64> -> tensor<2x1x1x3xf32>
  %hidden = tx.sub %one, %f : (tensor<2x1x1x3xf32>, tensor<2x1x1x3xf32>) -> tensor<2x1x1x3xf32>
  %low = tx.mul %hidden, %lowest : (tensor<2x1x1x3xf32>, tensor<2x1x1x3xf32>) -> tensor<2x1x1x3xf32>
  %mask = tx.broadcast %low : tensor<2x1x1x3xf32> -> tensor<2x2x3x3xf32>
  %qt = tx.transpose %q [0, 2, 1, 3] : tensor<2x3x2x8xf32> -> tensor<2x2x3x8xf32>
  %kt = tx.transpose %k [0, 2, 3, 1] : tensor<2x3x2x8xf32> -> tensor<2x2x8x3xf32>
  %vt = tx.transpose %v [0, 2, 1, 3] : tensor<2x3x2x8xf32> -> tensor<2x2x3x8xf32>
  %s = tx.batch_matmul %qt, %kt : (tensor<2x2x3x8xf32>, tensor<2x2x8x3xf32>) -> tensor<2x2x3x3xf32>
  %scaled = tx.mul %s, %quarter : (tensor<2x2x3x3xf32>, tensor<2x2x3x3xf32>) -> tensor<2x2x3x3xf32>
  %masked = tx.add %scaled, %mask : (tensor<2x2x3x3xf32>, tensor<2x2x3x3xf32>) -> tensor<2x2x3x3xf32>
  %p = tx.softmax %masked : (tensor<2x2x3x3xf32>) -> tensor<2x2x3x3xf32>
  // expected-remark@+1 {{raised to tx.attention}}
  %o = tx.batch_matmul %p, %vt : (tensor<2x2x3x3xf32>, tensor<2x2x3x8xf32>) -> tensor<2x2x3x8xf32>
  %ot = tx.transpose %o [0, 2, 1, 3] : tensor<2x2x3x8xf32> -> tensor<2x3x2x8xf32>
  return %ot : tensor<2x3x2x8xf32>
}

// -----

// T5: no scale, a relative position bias for all of the batch and a mask, added in [batch * heads, ...]; and
// more keys than queries.
// CHECK-LABEL: @relative_positions(
// CHECK-SAME:    %[[Q:[a-z0-9]*]]: tensor<2x3x2x8xf32>, %[[K:[a-z0-9]*]]: tensor<2x5x2x8xf32>, %[[V:[a-z0-9]*]]: tensor<2x5x2x8xf32>, %[[BIAS:[a-z0-9]*]]: tensor<1x2x3x5xf32>, %[[MASK:[a-z0-9]*]]: tensor<2x1x1x5xf32>
// CHECK-DAG:     %[[A:.*]] = tx.broadcast %[[BIAS]] : tensor<1x2x3x5xf32> -> tensor<2x2x3x5xf32>
// CHECK-DAG:     %[[B:.*]] = tx.broadcast %[[MASK]] : tensor<2x1x1x5xf32> -> tensor<2x2x3x5xf32>
// CHECK:         %[[SUM:.*]] = tx.add %[[A]], %[[B]]
// CHECK:         tx.attention %[[Q]], %[[K]], %[[V]] bias %[[SUM]] scale 1.000000e+00 :
func.func @relative_positions(%q: tensor<2x3x2x8xf32>, %k: tensor<2x5x2x8xf32>, %v: tensor<2x5x2x8xf32>, %bias: tensor<1x2x3x5xf32>, %mask: tensor<2x1x1x5xf32>) -> tensor<4x3x8xf32> {
  %a = tx.broadcast %bias : tensor<1x2x3x5xf32> -> tensor<2x2x3x5xf32>
  %b = tx.broadcast %mask : tensor<2x1x1x5xf32> -> tensor<2x2x3x5xf32>
  %ab = tx.add %a, %b : (tensor<2x2x3x5xf32>, tensor<2x2x3x5xf32>) -> tensor<2x2x3x5xf32>
  %ab3 = tx.reshape %ab : tensor<2x2x3x5xf32> -> tensor<4x3x5xf32>
  %qt = tx.transpose %q [0, 2, 1, 3] : tensor<2x3x2x8xf32> -> tensor<2x2x3x8xf32>
  %kt = tx.transpose %k [0, 2, 3, 1] : tensor<2x5x2x8xf32> -> tensor<2x2x8x5xf32>
  %vt = tx.transpose %v [0, 2, 1, 3] : tensor<2x5x2x8xf32> -> tensor<2x2x5x8xf32>
  %q3 = tx.reshape %qt : tensor<2x2x3x8xf32> -> tensor<4x3x8xf32>
  %k3 = tx.reshape %kt : tensor<2x2x8x5xf32> -> tensor<4x8x5xf32>
  %v3 = tx.reshape %vt : tensor<2x2x5x8xf32> -> tensor<4x5x8xf32>
  %s = tx.batch_matmul %q3, %k3 : (tensor<4x3x8xf32>, tensor<4x8x5xf32>) -> tensor<4x3x5xf32>
  %biased = tx.add %s, %ab3 : (tensor<4x3x5xf32>, tensor<4x3x5xf32>) -> tensor<4x3x5xf32>
  %p = tx.softmax %biased : (tensor<4x3x5xf32>) -> tensor<4x3x5xf32>
  // expected-remark@+1 {{raised to tx.attention}}
  %o = tx.batch_matmul %p, %v3 : (tensor<4x3x5xf32>, tensor<4x5x8xf32>) -> tensor<4x3x8xf32>
  return %o : tensor<4x3x8xf32>
}

// -----

// A boolean mask that is an input, and the guard of queries that see no key.
// CHECK-LABEL: @boolean_mask(
// CHECK-SAME:    %[[M:[a-z0-9]*]]: tensor<1x1x3x3xi1>
// CHECK:         %[[B:.*]] = tx.select %[[M]], %{{.*}}, %{{.*}} : (tensor<1x1x3x3xi1>, tensor<1x1x3x3xf32>, tensor<1x1x3x3xf32>)
// CHECK:         tx.attention %{{.*}}, %{{.*}}, %{{.*}} bias %[[B]] scale 1.000000e+00 zero_hidden :
func.func @boolean_mask(%q: tensor<1x2x3x8xf32>, %k: tensor<1x2x8x3xf32>, %v: tensor<1x2x3x8xf32>, %m: tensor<1x1x3x3xi1>) -> tensor<1x2x3x8xf32> {
  %inf = tx.constant dense<0xFF800000> : tensor<1x2x3x3xf32> : tensor<1x2x3x3xf32>
  %zero = tx.constant dense<0.0> : tensor<1x2x3x3xf32> : tensor<1x2x3x3xf32>
  %mask = tx.broadcast %m : tensor<1x1x3x3xi1> -> tensor<1x2x3x3xi1>
  %s = tx.batch_matmul %q, %k : (tensor<1x2x3x8xf32>, tensor<1x2x8x3xf32>) -> tensor<1x2x3x3xf32>
  %masked = tx.select %mask, %s, %inf : (tensor<1x2x3x3xi1>, tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %p = tx.softmax %masked : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %nan = tx.is_nan %p : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xi1>
  %pg = tx.select %nan, %zero, %p : (tensor<1x2x3x3xi1>, tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  // expected-remark@+1 {{raised to tx.attention}}
  %o = tx.batch_matmul %pg, %v : (tensor<1x2x3x3xf32>, tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32>
  return %o : tensor<1x2x3x8xf32>
}

// -----

// A query that sees no key would tell -1e4 in place of a score from -1e4 added to it.
// CHECK-LABEL: @replaced_by_ten_thousand(
// CHECK-NOT:     tx.attention
func.func @replaced_by_ten_thousand(%q: tensor<1x2x3x8xf32>, %k: tensor<1x2x8x3xf32>, %v: tensor<1x2x3x8xf32>, %m: tensor<1x2x3x3xi1>) -> tensor<1x2x3x8xf32> {
  %low = tx.constant dense<-1.0e4> : tensor<1x2x3x3xf32> : tensor<1x2x3x3xf32>
  %s = tx.batch_matmul %q, %k : (tensor<1x2x3x8xf32>, tensor<1x2x8x3xf32>) -> tensor<1x2x3x3xf32>
  %masked = tx.select %m, %s, %low : (tensor<1x2x3x3xi1>, tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  // expected-remark@+1 {{nearly attention: between the scores and the softmax stands tx.select, which neither scales them nor adds to them nor hides them with a number below -1e30}}
  %p = tx.softmax %masked : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %o = tx.batch_matmul %p, %v : (tensor<1x2x3x3xf32>, tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32>
  return %o : tensor<1x2x3x8xf32>
}

// -----

// LLaMA: key heads repeated for the query heads that share them, and a mask by value.
// CHECK-LABEL: @grouped(
// CHECK-SAME:    %[[Q:[a-z0-9]*]]: tensor<2x4x6x16xf32>, %[[K:[a-z0-9]*]]: tensor<2x4x2x16xf32>, %[[V:[a-z0-9]*]]: tensor<2x4x2x16xf32>
// CHECK-NEXT:    %[[O:.*]], %{{.*}} = tx.attention %[[Q]], %[[K]], %[[V]] scale 2.500000e-01 causal :
// CHECK-NEXT:    return %[[O]]
func.func @grouped(%q: tensor<2x4x6x16xf32>, %k: tensor<2x4x2x16xf32>, %v: tensor<2x4x2x16xf32>) -> tensor<2x4x6x16xf32> {
  %quarter = tx.constant dense<0.25> : tensor<2x6x4x4xf32> : tensor<2x6x4x4xf32>
  %m = tx.constant dense<[[0.0, -3.4e+38, -3.4e+38, -3.4e+38], [0.0, 0.0, -3.4e+38, -3.4e+38], [0.0, 0.0, 0.0, -3.4e+38], [0.0, 0.0, 0.0, 0.0]]> : tensor<4x4xf32> : tensor<4x4xf32>
  %mask = tx.broadcast %m : tensor<4x4xf32> -> tensor<2x6x4x4xf32>
  %qt = tx.transpose %q [0, 2, 1, 3] : tensor<2x4x6x16xf32> -> tensor<2x6x4x16xf32>
  %kt = tx.transpose %k [0, 2, 1, 3] : tensor<2x4x2x16xf32> -> tensor<2x2x4x16xf32>
  %vt = tx.transpose %v [0, 2, 1, 3] : tensor<2x4x2x16xf32> -> tensor<2x2x4x16xf32>
  %k5 = tx.reshape %kt : tensor<2x2x4x16xf32> -> tensor<2x2x1x4x16xf32>
  %kr = tx.broadcast %k5 : tensor<2x2x1x4x16xf32> -> tensor<2x2x3x4x16xf32>
  %k4 = tx.reshape %kr : tensor<2x2x3x4x16xf32> -> tensor<2x6x4x16xf32>
  %v5 = tx.reshape %vt : tensor<2x2x4x16xf32> -> tensor<2x2x1x4x16xf32>
  %vr = tx.broadcast %v5 : tensor<2x2x1x4x16xf32> -> tensor<2x2x3x4x16xf32>
  %v4 = tx.reshape %vr : tensor<2x2x3x4x16xf32> -> tensor<2x6x4x16xf32>
  %k4t = tx.transpose %k4 [0, 1, 3, 2] : tensor<2x6x4x16xf32> -> tensor<2x6x16x4xf32>
  %s = tx.batch_matmul %qt, %k4t : (tensor<2x6x4x16xf32>, tensor<2x6x16x4xf32>) -> tensor<2x6x4x4xf32>
  %scaled = tx.mul %s, %quarter : (tensor<2x6x4x4xf32>, tensor<2x6x4x4xf32>) -> tensor<2x6x4x4xf32>
  %masked = tx.add %scaled, %mask : (tensor<2x6x4x4xf32>, tensor<2x6x4x4xf32>) -> tensor<2x6x4x4xf32>
  %p = tx.softmax %masked : (tensor<2x6x4x4xf32>) -> tensor<2x6x4x4xf32>
  // expected-remark@+1 {{raised to tx.attention}}
  %o = tx.batch_matmul %p, %v4 : (tensor<2x6x4x4xf32>, tensor<2x6x4x16xf32>) -> tensor<2x6x4x16xf32>
  %ot = tx.transpose %o [0, 2, 1, 3] : tensor<2x6x4x16xf32> -> tensor<2x4x6x16xf32>
  return %ot : tensor<2x4x6x16xf32>
}

// -----

// Heads repeated in another order are no groups: query head i would read key head i mod 2. They stay six.
// CHECK-LABEL: @heads_in_turn(
// CHECK:         tx.attention %{{.*}} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>)
func.func @heads_in_turn(%q: tensor<2x6x4x8xf32>, %k: tensor<2x2x8x4xf32>, %v: tensor<2x6x4x8xf32>) -> tensor<2x6x4x8xf32> {
  %k5 = tx.reshape %k : tensor<2x2x8x4xf32> -> tensor<2x1x2x8x4xf32>
  %kr = tx.broadcast %k5 : tensor<2x1x2x8x4xf32> -> tensor<2x3x2x8x4xf32>
  %k4 = tx.reshape %kr : tensor<2x3x2x8x4xf32> -> tensor<2x6x8x4xf32>
  %s = tx.batch_matmul %q, %k4 : (tensor<2x6x4x8xf32>, tensor<2x6x8x4xf32>) -> tensor<2x6x4x4xf32>
  %p = tx.softmax %s : (tensor<2x6x4x4xf32>) -> tensor<2x6x4x4xf32>
  // expected-remark@+1 {{raised to tx.attention}}
  %o = tx.batch_matmul %p, %v : (tensor<2x6x4x4xf32>, tensor<2x6x4x8xf32>) -> tensor<2x6x4x8xf32>
  return %o : tensor<2x6x4x8xf32>
}

// -----

// One key head for all queries (Shazeer, arXiv 1911.02150), and Mistral's window: a query sees two keys.
// CHECK-LABEL: @window(
// CHECK:         tx.attention %{{.*}}, %{{.*}}, %{{.*}} scale 1.000000e+00 causal window 2 : (tensor<1x4x3x8xf32>, tensor<1x4x1x8xf32>, tensor<1x4x1x8xf32>)
func.func @window(%q: tensor<1x3x4x8xf32>, %k: tensor<1x1x4x8xf32>, %v: tensor<1x1x4x8xf32>) -> tensor<1x3x4x8xf32> {
  %m = tx.constant dense<[[0.0, -1.0e38, -1.0e38, -1.0e38], [0.0, 0.0, -1.0e38, -1.0e38], [-1.0e38, 0.0, 0.0, -1.0e38], [-1.0e38, -1.0e38, 0.0, 0.0]]> : tensor<4x4xf32> : tensor<4x4xf32>
  %mask = tx.broadcast %m : tensor<4x4xf32> -> tensor<1x3x4x4xf32>
  %kr = tx.broadcast %k : tensor<1x1x4x8xf32> -> tensor<1x3x4x8xf32>
  %vr = tx.broadcast %v : tensor<1x1x4x8xf32> -> tensor<1x3x4x8xf32>
  %kt = tx.transpose %kr [0, 1, 3, 2] : tensor<1x3x4x8xf32> -> tensor<1x3x8x4xf32>
  %s = tx.batch_matmul %q, %kt : (tensor<1x3x4x8xf32>, tensor<1x3x8x4xf32>) -> tensor<1x3x4x4xf32>
  %masked = tx.add %s, %mask : (tensor<1x3x4x4xf32>, tensor<1x3x4x4xf32>) -> tensor<1x3x4x4xf32>
  %p = tx.softmax %masked : (tensor<1x3x4x4xf32>) -> tensor<1x3x4x4xf32>
  // expected-remark@+1 {{raised to tx.attention}}
  %o = tx.batch_matmul %p, %vr : (tensor<1x3x4x4xf32>, tensor<1x3x4x8xf32>) -> tensor<1x3x4x8xf32>
  return %o : tensor<1x3x4x8xf32>
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

// -----

// A training-mode export: the dropout of the weights, whose elements the op numbers as tx.dropout does.
// CHECK-LABEL: @dropped(
// CHECK-NOT:     tx.dropout
// CHECK:         tx.attention %{{.*}}, %{{.*}}, %{{.*}} scale 1.000000e+00 dropout 1.000000e-01 id 5 :
func.func @dropped(%q: tensor<2x3x8xf32>, %k: tensor<2x8x3xf32>, %v: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
  %s = tx.batch_matmul %q, %k : (tensor<2x3x8xf32>, tensor<2x8x3xf32>) -> tensor<2x3x3xf32>
  %s4 = tx.reshape %s : tensor<2x3x3xf32> -> tensor<1x2x3x3xf32>
  %p = tx.softmax %s4 : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %d = tx.dropout %p ratio 0.1 id 5 : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %d3 = tx.reshape %d : tensor<1x2x3x3xf32> -> tensor<2x3x3xf32>
  // expected-remark@+1 {{raised to tx.attention}}
  %o = tx.batch_matmul %d3, %v : (tensor<2x3x3xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %o : tensor<2x3x8xf32>
}

// -----

// Somebody else reads the weights before they are dropped.
// CHECK-LABEL: @dropped_returned(
// CHECK-NOT:     tx.attention
func.func @dropped_returned(%q: tensor<1x2x3x8xf32>, %k: tensor<1x2x8x3xf32>, %v: tensor<1x2x3x8xf32>) -> (tensor<1x2x3x8xf32>, tensor<1x2x3x3xf32>) {
  %s = tx.batch_matmul %q, %k : (tensor<1x2x3x8xf32>, tensor<1x2x8x3xf32>) -> tensor<1x2x3x3xf32>
  %p = tx.softmax %s : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %d = tx.dropout %p ratio 0.1 id 5 : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %o = tx.batch_matmul %d, %v : (tensor<1x2x3x3xf32>, tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32>
  return %o, %p : tensor<1x2x3x8xf32>, tensor<1x2x3x3xf32>
}

// -----

// The op has one dropout.
// CHECK-LABEL: @dropped_twice(
// CHECK-NOT:     tx.attention
func.func @dropped_twice(%q: tensor<1x2x3x8xf32>, %k: tensor<1x2x8x3xf32>, %v: tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32> {
  %s = tx.batch_matmul %q, %k : (tensor<1x2x3x8xf32>, tensor<1x2x8x3xf32>) -> tensor<1x2x3x3xf32>
  // expected-remark@+1 {{nearly attention: a dropout of its weights is not the last of what is computed from them}}
  %p = tx.softmax %s : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %d = tx.dropout %p ratio 0.1 id 5 : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %e = tx.dropout %d ratio 0.1 id 6 : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %o = tx.batch_matmul %e, %v : (tensor<1x2x3x3xf32>, tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32>
  return %o : tensor<1x2x3x8xf32>
}

// -----

// BLOOM of one sample: ALiBi, made of an input, is added in [batch * heads, ...] and the mask in [batch, heads, ...], which tells that the
// dimension of two is heads, not a batch of two.
// CHECK-LABEL: @one_sample(
// CHECK-SAME:    %[[Q:[a-z0-9]*]]: tensor<1x3x2x8xf32>, %[[K:[a-z0-9]*]]: tensor<1x3x2x8xf32>, %[[V:[a-z0-9]*]]: tensor<1x3x2x8xf32>
// CHECK:         %[[O:.*]], %{{.*}} = tx.attention %[[Q]], %[[K]], %[[V]] bias %{{.*}} scale 1.000000e+00 : (tensor<1x3x2x8xf32>, tensor<1x3x2x8xf32>, tensor<1x3x2x8xf32>, tensor<1x2x3x3xf32>)
func.func @one_sample(%q: tensor<1x3x2x8xf32>, %k: tensor<1x3x2x8xf32>, %v: tensor<1x3x2x8xf32>, %alibi: tensor<2x1x3xf32>, %mask: tensor<1x1x3x3xf32>) -> tensor<2x3x8xf32> {
  %qt = tx.transpose %q [0, 2, 1, 3] : tensor<1x3x2x8xf32> -> tensor<1x2x3x8xf32>
  %kt = tx.transpose %k [0, 2, 3, 1] : tensor<1x3x2x8xf32> -> tensor<1x2x8x3xf32>
  %vt = tx.transpose %v [0, 2, 1, 3] : tensor<1x3x2x8xf32> -> tensor<1x2x3x8xf32>
  %q3 = tx.reshape %qt : tensor<1x2x3x8xf32> -> tensor<2x3x8xf32>
  %k3 = tx.reshape %kt : tensor<1x2x8x3xf32> -> tensor<2x8x3xf32>
  %v3 = tx.reshape %vt : tensor<1x2x3x8xf32> -> tensor<2x3x8xf32>
  %s = tx.batch_matmul %q3, %k3 : (tensor<2x3x8xf32>, tensor<2x8x3xf32>) -> tensor<2x3x3xf32>
  %a = tx.broadcast %alibi : tensor<2x1x3xf32> -> tensor<2x3x3xf32>
  %biased = tx.add %s, %a : (tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %apart = tx.reshape %biased : tensor<2x3x3xf32> -> tensor<1x2x3x3xf32>
  %m = tx.broadcast %mask : tensor<1x1x3x3xf32> -> tensor<1x2x3x3xf32>
  %masked = tx.add %apart, %m : (tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %p = tx.softmax %masked : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %p3 = tx.reshape %p : tensor<1x2x3x3xf32> -> tensor<2x3x3xf32>
  // expected-remark@+1 {{raised to tx.attention}}
  %o = tx.batch_matmul %p3, %v3 : (tensor<2x3x3xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %o : tensor<2x3x8xf32>
}

// -----

// Nothing but q's own tensor tells it: [1, queries, heads, features]. Key heads are shared by two query heads each.
// CHECK-LABEL: @one_sample_merged(
// CHECK:         tx.attention %{{.*}} scale 1.000000e+00 : (tensor<1x3x4x8xf32>, tensor<1x3x2x8xf32>, tensor<1x3x2x8xf32>)
func.func @one_sample_merged(%q: tensor<1x3x4x8xf32>, %k: tensor<1x2x8x3xf32>, %v: tensor<1x2x3x8xf32>) -> tensor<4x3x8xf32> {
  %qt = tx.transpose %q [0, 2, 1, 3] : tensor<1x3x4x8xf32> -> tensor<1x4x3x8xf32>
  %q3 = tx.reshape %qt : tensor<1x4x3x8xf32> -> tensor<4x3x8xf32>
  %k5 = tx.reshape %k : tensor<1x2x8x3xf32> -> tensor<1x2x1x8x3xf32>
  %kr = tx.broadcast %k5 : tensor<1x2x1x8x3xf32> -> tensor<1x2x2x8x3xf32>
  %k3 = tx.reshape %kr : tensor<1x2x2x8x3xf32> -> tensor<4x8x3xf32>
  %v5 = tx.reshape %v : tensor<1x2x3x8xf32> -> tensor<1x2x1x3x8xf32>
  %vr = tx.broadcast %v5 : tensor<1x2x1x3x8xf32> -> tensor<1x2x2x3x8xf32>
  %v3 = tx.reshape %vr : tensor<1x2x2x3x8xf32> -> tensor<4x3x8xf32>
  %s = tx.batch_matmul %q3, %k3 : (tensor<4x3x8xf32>, tensor<4x8x3xf32>) -> tensor<4x3x3xf32>
  %p = tx.softmax %s : (tensor<4x3x3xf32>) -> tensor<4x3x3xf32>
  // expected-remark@+1 {{raised to tx.attention}}
  %o = tx.batch_matmul %p, %v3 : (tensor<4x3x3xf32>, tensor<4x3x8xf32>) -> tensor<4x3x8xf32>
  return %o : tensor<4x3x8xf32>
}

// -----

// Four samples of one head.
// CHECK-LABEL: @one_head(
// CHECK:         tx.attention %{{.*}} scale 1.000000e+00 : (tensor<4x3x1x8xf32>, tensor<4x3x1x8xf32>, tensor<4x3x1x8xf32>)
func.func @one_head(%q: tensor<4x3x1x8xf32>, %k: tensor<4x1x8x3xf32>, %v: tensor<4x1x3x8xf32>) -> tensor<4x3x8xf32> {
  %qt = tx.transpose %q [0, 2, 1, 3] : tensor<4x3x1x8xf32> -> tensor<4x1x3x8xf32>
  %q3 = tx.reshape %qt : tensor<4x1x3x8xf32> -> tensor<4x3x8xf32>
  %k3 = tx.reshape %k : tensor<4x1x8x3xf32> -> tensor<4x8x3xf32>
  %v3 = tx.reshape %v : tensor<4x1x3x8xf32> -> tensor<4x3x8xf32>
  %s = tx.batch_matmul %q3, %k3 : (tensor<4x3x8xf32>, tensor<4x8x3xf32>) -> tensor<4x3x3xf32>
  %p = tx.softmax %s : (tensor<4x3x3xf32>) -> tensor<4x3x3xf32>
  // expected-remark@+1 {{raised to tx.attention}}
  %o = tx.batch_matmul %p, %v3 : (tensor<4x3x3xf32>, tensor<4x3x8xf32>) -> tensor<4x3x8xf32>
  return %o : tensor<4x3x8xf32>
}
