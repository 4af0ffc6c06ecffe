// RUN: partita-opt %s --pass-pipeline='builtin.module(func.func(raise-rotate-half{remarks}))' --split-input-file --verify-diagnostics | FileCheck %s

// LLaMA: the second half, negated, and the first.
// CHECK-LABEL: @halves(
// CHECK-SAME:    %[[X:.*]]: tensor<2x3x8xf32>
// CHECK-NEXT:    %[[Y:.*]] = tx.rotate_half %[[X]] :
// CHECK-NEXT:    return %[[Y]]
func.func @halves(%x: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
  %a = tx.slice %x [0, 0, 0] by [1, 1, 1] : tensor<2x3x8xf32> -> tensor<2x3x4xf32>
  %b = tx.slice %x [0, 0, 4] by [1, 1, 1] : tensor<2x3x8xf32> -> tensor<2x3x4xf32>
  %n = tx.neg %b : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  // expected-remark@+1 {{raised to tx.rotate_half}}
  %y = tx.concat %n, %a along 2 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// -----

// GPT-J: elements of odd index, negated, beside those of even index.
// CHECK-LABEL: @interleaved(
// CHECK-SAME:    %[[X:.*]]: tensor<2x3x8xf32>
// CHECK-NEXT:    %[[Y:.*]] = tx.rotate_half %[[X]] interleaved :
// CHECK-NEXT:    %[[P:.*]] = tx.reshape %[[Y]] : tensor<2x3x8xf32> -> tensor<2x3x4x2xf32>
// CHECK-NEXT:    tx.reshape %[[P]] : tensor<2x3x4x2xf32> -> tensor<2x3x8xf32>
func.func @interleaved(%x: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
  %a = tx.slice %x [0, 0, 0] by [1, 1, 2] : tensor<2x3x8xf32> -> tensor<2x3x4xf32>
  %b = tx.slice %x [0, 0, 1] by [1, 1, 2] : tensor<2x3x8xf32> -> tensor<2x3x4xf32>
  %n = tx.neg %b : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %n1 = tx.reshape %n : tensor<2x3x4xf32> -> tensor<2x3x4x1xf32>
  %a1 = tx.reshape %a : tensor<2x3x4xf32> -> tensor<2x3x4x1xf32>
  // expected-remark@+1 {{raised to tx.rotate_half}}
  %p = tx.concat %n1, %a1 along 3 : (tensor<2x3x4x1xf32>, tensor<2x3x4x1xf32>) -> tensor<2x3x4x2xf32>
  %y = tx.reshape %p : tensor<2x3x4x2xf32> -> tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// -----

// Halves of two tensors, or the first one negated, are something else.
// CHECK-LABEL: @others(
// CHECK-NOT:     rotate_half
func.func @others(%x: tensor<2x3x8xf32>, %z: tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3x8xf32>) {
  %a = tx.slice %x [0, 0, 0] by [1, 1, 1] : tensor<2x3x8xf32> -> tensor<2x3x4xf32>
  %b = tx.slice %x [0, 0, 4] by [1, 1, 1] : tensor<2x3x8xf32> -> tensor<2x3x4xf32>
  %c = tx.slice %z [0, 0, 4] by [1, 1, 1] : tensor<2x3x8xf32> -> tensor<2x3x4xf32>
  %na = tx.neg %a : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %nc = tx.neg %c : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %y = tx.concat %nc, %a along 2 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x8xf32>
  %u = tx.concat %na, %b along 2 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x8xf32>
  return %y, %u : tensor<2x3x8xf32>, tensor<2x3x8xf32>
}
