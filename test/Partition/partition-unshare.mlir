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
func.func @forward(%q: tensor<4x6x8xf32>, %p: tensor<4x6x8xf32>, %angles: tensor<6x8xf32>) -> (tensor<4x6x8xf32>, tensor<4x6x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>) {
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
