// RUN: partita-opt %s --canonicalize | FileCheck %s

// The list of saved values holds what the backward pass has not anyhow, once.
// CHECK-LABEL: func.func @simplified
// CHECK: %[[A:.*]] = tx.exp
// CHECK: train.yield %{{.*}} : tensor<4xf32> saves %[[A]] : tensor<4xf32>
// CHECK-NEXT: } backward (%[[X:.*]], %[[A1:.*]]) {
// CHECK-NEXT: tx.mul %[[A1]], %[[A1]]
// CHECK-NEXT: tx.mul %{{.*}}, %[[X]]
// CHECK-NEXT: tx.mul %{{.*}}, %arg1
func.func @simplified(%xs: tensor<2x4xf32>, %w: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %s:2 = train.accumulate (%x = %xs) : (tensor<2x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %a = tx.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    %b = tx.tanh %a : (tensor<4xf32>) -> tensor<4xf32>
    train.yield %b : tensor<4xf32> saves %a, %b, %a, %x, %w : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  } backward (%x1, %a1, %b1, %a2, %x2, %w1) {
    %0 = tx.mul %a1, %a2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %1 = tx.mul %0, %x2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2 = tx.mul %1, %w1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    train.yield %2 : tensor<4xf32>
  }
  return %s#0, %s#1 : tensor<4xf32>, tensor<4xf32>
}
