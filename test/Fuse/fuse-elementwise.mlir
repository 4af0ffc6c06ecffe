// RUN: partita-opt %s --fuse-elementwise --canonicalize | FileCheck %s
// RUN: partita-opt %s --fuse-elementwise -o %t.mlir
// RUN: bash %S/equal.sh %s %t.mlir bias_gelu diamond barrier interleaved siblings siblings_side_by_side

// What others use too is one more result.
// CHECK-LABEL: func.func @bias_gelu
// CHECK: %[[F:.*]]:2 = tx.fusion (%[[A:.*]] = %arg0, %[[B:.*]] = %{{.*}}) : {{.*}} {
// CHECK:   %[[Z:.*]] = tx.add %[[A]], %[[B]]
// CHECK:   %[[Y:.*]] = tx.gelu_tanh %[[Z]]
// CHECK:   tx.fused %[[Z]], %[[Y]]
// CHECK: return %[[F]]#0, %[[F]]#1
func.func @bias_gelu(%x: tensor<8x4xf32>, %b: tensor<4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %r = tx.broadcast %b : tensor<4xf32> -> tensor<8x4xf32>
  %0 = tx.add %x, %r : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = tx.gelu_tanh %0 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0, %1 : tensor<8x4xf32>, tensor<8x4xf32>
}

// A chain with constants, and a diamond: one kernel with one result.
// CHECK-LABEL: func.func @diamond
// CHECK: %[[F:.*]] = tx.fusion (%{{.*}} = %arg0) : (tensor<8xf32>) -> tensor<8xf32> {
// CHECK-DAG: tx.constant dense<2.0
// CHECK-DAG: tx.exp
// CHECK-DAG: tx.tanh
// CHECK: tx.fused %{{.*}} : tensor<8xf32>
// CHECK: return %[[F]]
func.func @diamond(%x: tensor<8xf32>) -> tensor<8xf32> {
  %two = tx.constant dense<2.0> : tensor<8xf32> : tensor<8xf32>
  %a = tx.mul %x, %two : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %b = tx.exp %a : (tensor<8xf32>) -> tensor<8xf32>
  %c = tx.tanh %a : (tensor<8xf32>) -> tensor<8xf32>
  %d = tx.add %b, %c : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %d : tensor<8xf32>
}

// The reduction needs the exponential before the division can start: two loops.
// CHECK-LABEL: func.func @barrier
// CHECK-NOT: tx.fusion
// CHECK: tx.exp
// CHECK: tx.reduce_sum
// CHECK: tx.div
func.func @barrier(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %e = tx.exp %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %s = tx.reduce_sum %e [1] : tensor<8x4xf32> -> tensor<8xf32>
  %r = tx.reshape %s : tensor<8xf32> -> tensor<8x1xf32>
  %b = tx.broadcast %r : tensor<8x1xf32> -> tensor<8x4xf32>
  %y = tx.div %e, %b : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// Other shapes, scalars and single ops stay as they are.
// CHECK-LABEL: func.func @alone
// CHECK-NOT: tx.fusion
func.func @alone(%x: tensor<8x4xf32>, %s: tensor<f32>) -> (tensor<32xf32>, tensor<f32>) {
  %e = tx.exp %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %r = tx.reshape %e : tensor<8x4xf32> -> tensor<32xf32>
  %y = tx.neg %r : (tensor<32xf32>) -> tensor<32xf32>
  %a = tx.exp %s : (tensor<f32>) -> tensor<f32>
  %b = tx.neg %a : (tensor<f32>) -> tensor<f32>
  return %y, %b : tensor<32xf32>, tensor<f32>
}

// A matmul reads the exponential before its other users run: it cannot wait for them. Comparisons,
// selections and casts are elementwise all the same.
// CHECK-LABEL: func.func @interleaved
// CHECK: %[[A:.*]] = tx.exp
// CHECK: %[[P:.*]] = tx.matmul %[[A]]
// CHECK: tx.fusion
// CHECK:   tx.greater
// CHECK:   tx.select
// CHECK:   tx.cast
func.func @interleaved(%x: tensor<8x8xf64>, %w: tensor<8x8xf64>) -> tensor<8x8xf32> {
  %a = tx.exp %x : (tensor<8x8xf64>) -> tensor<8x8xf64>
  %p = tx.matmul %a, %w : (tensor<8x8xf64>, tensor<8x8xf64>) -> tensor<8x8xf64>
  %g = tx.greater %p, %a : (tensor<8x8xf64>, tensor<8x8xf64>) -> tensor<8x8xi1>
  %s = tx.select %g, %p, %a : (tensor<8x8xi1>, tensor<8x8xf64>, tensor<8x8xf64>) -> tensor<8x8xf64>
  %y = tx.cast %s : tensor<8x8xf64> -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// Two that read one value, with a matmul between them: the second moves up to the first, because that frees %dy. So it is in the backward pass of a gated
// MLP.
// CHECK-LABEL: func.func @siblings
// CHECK: %[[DY:.*]] = tx.matmul
// CHECK: %[[F:.*]]:2 = tx.fusion (%[[A:.*]] = %[[DY]], %[[B:.*]] = %arg1, %[[C:.*]] = %arg2)
// CHECK:   %[[U:.*]] = tx.mul %[[A]], %[[B]]
// CHECK:   %[[V:.*]] = tx.mul %[[A]], %[[C]]
// CHECK:   tx.fused %[[U]], %[[V]]
// CHECK: tx.matmul %[[F]]#0
// CHECK: tx.matmul %[[F]]#1
func.func @siblings(%x: tensor<4x4xf32>, %g: tensor<4x4xf32>, %h: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %dy = tx.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %a = tx.mul %dy, %g : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %m = tx.matmul %a, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = tx.mul %dy, %h : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %n = tx.matmul %b, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %m, %n : tensor<4x4xf32>, tensor<4x4xf32>
}

// No: the argument that both read stays in memory, so %b would only be held longer.
// CHECK-LABEL: func.func @holds_more
// CHECK-NOT: tx.fusion
func.func @holds_more(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %a = tx.exp %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %m = tx.matmul %a, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = tx.tanh %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %n = tx.matmul %b, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %m, %n : tensor<4x4xf32>, tensor<4x4xf32>
}

// Nor where %dy is read once more behind both, or where the second needs what comes between them.
// CHECK-LABEL: func.func @cannot_move
// CHECK-NOT: tx.fusion
func.func @cannot_move(%x: tensor<4x4xf32>, %g: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %dy = tx.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %a = tx.mul %dy, %g : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %m = tx.matmul %a, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = tx.mul %dy, %m : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = tx.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %d = tx.tanh %c : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %n = tx.matmul %d, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %e = tx.exp %c : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %o = tx.matmul %e, %c : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %b, %n, %o : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// Nothing is in the way where the later one has begun before the earlier one ends.
// CHECK-LABEL: func.func @siblings_side_by_side
// CHECK: tx.matmul
// CHECK: %[[F:.*]]:2 = tx.fusion
// CHECK: tx.matmul %[[F]]#0
// CHECK: tx.matmul %[[F]]#1
func.func @siblings_side_by_side(%x: tensor<4x4xf32>, %g: tensor<4x4xf32>, %h: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %dy = tx.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = tx.mul %dy, %h : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %a = tx.mul %dy, %g : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %m = tx.matmul %a, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = tx.mul %b, %g : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %n = tx.matmul %c, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %m, %n : tensor<4x4xf32>, tensor<4x4xf32>
}

// One that an earlier group has followed stays where it is.
// CHECK-LABEL: func.func @followed
// CHECK: tx.tanh
// CHECK: tx.matmul
// CHECK: tx.fusion
// CHECK-NOT: tx.fusion
func.func @followed(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %u = tx.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %w = tx.matmul %u, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %k = tx.exp %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %f = tx.tanh %u : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %m = tx.matmul %f, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %e = tx.mul %u, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %n = tx.matmul %e, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %l = tx.mul %k, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %o = tx.matmul %l, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %m, %n, %o : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// Nor can one move up to a group where an input is computed by a fusion that comes later.
// CHECK-LABEL: func.func @input_fused_later
// CHECK: tx.mul
// CHECK: tx.matmul
// CHECK: tx.fusion
// CHECK-NOT: tx.fusion
func.func @input_fused_later(%x: tensor<4x4xf32>, %g: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %u = tx.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %x1 = tx.exp %g : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %a = tx.mul %u, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %m = tx.matmul %a, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %x2 = tx.tanh %x1 : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %n = tx.matmul %x2, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = tx.mul %u, %x1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %o = tx.matmul %b, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %m, %n, %o : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}
