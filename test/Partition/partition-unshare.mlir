// RUN: partita-opt %s --partition-unshare | FileCheck %s

// Each user its own repetition; what a parameter has made, and what repeats nothing, stays shared.
// CHECK-LABEL: func @forward
// CHECK: %[[NEG:.*]] = tx.neg %arg2
// CHECK: %[[BIAS:.*]] = tx.broadcast %{{.*}} : tensor<8xf32> -> tensor<6x8xf32>
// CHECK: %[[A:.*]] = tx.broadcast %arg2 : tensor<6x8xf32> -> tensor<4x6x8xf32>
// CHECK: tx.mul %arg0, %[[A]]
// CHECK: %[[B:.*]] = tx.broadcast %arg2 : tensor<6x8xf32> -> tensor<4x6x8xf32>
// CHECK: tx.mul %arg1, %[[B]]
// CHECK-NOT: tx.broadcast
// CHECK: tx.add %[[NEG]], %[[BIAS]]
// CHECK: tx.sub %[[NEG]], %[[BIAS]]
train.parameter @bias : tensor<8xf32>
func.func @forward(%q: tensor<4x6x8xf32>, %p: tensor<4x6x8xf32>, %angles: tensor<6x8xf32>) -> (tensor<4x6x8xf32>, tensor<4x6x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>) attributes {train.entry_point = #train.entry_point<forward>} {
  %table = tx.broadcast %angles : tensor<6x8xf32> -> tensor<4x6x8xf32>
  %neg = tx.neg %angles : (tensor<6x8xf32>) -> tensor<6x8xf32>
  %bias = train.read @bias : tensor<8xf32>
  %rows = tx.broadcast %bias : tensor<8xf32> -> tensor<6x8xf32>
  %0 = tx.mul %q, %table : (tensor<4x6x8xf32>, tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  %1 = tx.mul %p, %table : (tensor<4x6x8xf32>, tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  %2 = tx.add %neg, %rows : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  %3 = tx.sub %neg, %rows : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  return %0, %1, %2, %3 : tensor<4x6x8xf32>, tensor<4x6x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>
}

// The same of a constant, whose dimensions may be split: through what repeats it, too.
// CHECK-LABEL: func @slopes
// CHECK: %[[C:.*]] = tx.constant {{.*}} : tensor<8xf32>
// CHECK-NEXT: %[[A:.*]] = tx.broadcast %[[C]]
// CHECK-NEXT: tx.mul %arg0, %[[A]]
// CHECK-NEXT: %[[D:.*]] = tx.constant {{.*}} : tensor<8xf32>
// CHECK-NEXT: %[[B:.*]] = tx.broadcast %[[D]]
// CHECK-NEXT: tx.mul %arg1, %[[B]]
func.func @slopes(%q: tensor<6x8xf32>, %p: tensor<6x8xf32>) -> (tensor<6x8xf32>, tensor<6x8xf32>) {
  %c = tx.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32> : tensor<8xf32>
  %rows = tx.broadcast %c : tensor<8xf32> -> tensor<6x8xf32>
  %0 = tx.mul %q, %rows : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  %1 = tx.mul %p, %rows : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  return %0, %1 : tensor<6x8xf32>, tensor<6x8xf32>
}
