// What a model itself rounds inside of a function, x.bfloat16().float(), is no formula of it: one op would not round there.
// RUN: partita-opt %s --pass-pipeline='builtin.module(func.func(raise-rms-norm,raise-activation,raise-attention))' | FileCheck %s

// CHECK-LABEL: @gelu(
// CHECK: tx.erf
func.func @gelu(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %half = tx.constant dense<0.5> : tensor<2x8xf32> : tensor<2x8xf32>
  %root = tx.constant dense<0.707106769> : tensor<2x8xf32> : tensor<2x8xf32>
  %one = tx.constant dense<1.0> : tensor<2x8xf32> : tensor<2x8xf32>
  %0 = tx.mul %x, %half : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %1 = tx.cast %0 {tx.rounds} : tensor<2x8xf32> -> tensor<2x8xbf16>
  %2 = tx.cast %1 {tx.rounds} : tensor<2x8xbf16> -> tensor<2x8xf32>
  %3 = tx.mul %x, %root : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %4 = tx.erf %3 : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %5 = tx.add %4, %one : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %6 = tx.mul %2, %5 : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %6 : tensor<2x8xf32>
}

// Around it, the model may round.
// CHECK-LABEL: @around(
// CHECK: tx.cast
// CHECK: %[[X:.*]] = tx.cast
// CHECK-NEXT: tx.gelu %[[X]]
func.func @around(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %half = tx.constant dense<0.5> : tensor<2x8xf32> : tensor<2x8xf32>
  %root = tx.constant dense<0.707106769> : tensor<2x8xf32> : tensor<2x8xf32>
  %one = tx.constant dense<1.0> : tensor<2x8xf32> : tensor<2x8xf32>
  %0 = tx.cast %x {tx.rounds} : tensor<2x8xf32> -> tensor<2x8xbf16>
  %1 = tx.cast %0 {tx.rounds} : tensor<2x8xbf16> -> tensor<2x8xf32>
  %2 = tx.mul %1, %half : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %3 = tx.mul %1, %root : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %4 = tx.erf %3 : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %5 = tx.add %4, %one : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %6 = tx.mul %2, %5 : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %6 : tensor<2x8xf32>
}

// The weight scales what is rounded.
// CHECK-LABEL: @norm(
// CHECK: %[[Y:.*]], %{{.*}} = tx.rms_norm
// CHECK-NEXT: tx.cast %[[Y]] {tx.rounds}
// CHECK: tx.mul
func.func @norm(%x: tensor<2x8xf32>, %w: tensor<8xf32>) -> tensor<2x8xf32> {
  %e = tx.constant dense<1.0e-6> : tensor<2x1xf32> : tensor<2x1xf32>
  %0 = tx.mul %x, %x : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %1 = tx.reduce_mean %0 [1] : tensor<2x8xf32> -> tensor<2xf32>
  %2 = tx.reshape %1 : tensor<2xf32> -> tensor<2x1xf32>
  %3 = tx.add %2, %e : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
  %4 = tx.rsqrt %3 : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %5 = tx.broadcast %4 : tensor<2x1xf32> -> tensor<2x8xf32>
  %6 = tx.mul %x, %5 : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %7 = tx.cast %6 {tx.rounds} : tensor<2x8xf32> -> tensor<2x8xbf16>
  %8 = tx.cast %7 {tx.rounds} : tensor<2x8xbf16> -> tensor<2x8xf32>
  %9 = tx.broadcast %w : tensor<8xf32> -> tensor<2x8xf32>
  %10 = tx.mul %8, %9 : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %10 : tensor<2x8xf32>
}

// CHECK-LABEL: @attention(
// CHECK-NOT: tx.attention
// CHECK: return
func.func @attention(%q: tensor<2x3x4x8xf32>, %k: tensor<2x3x8x4xf32>, %v: tensor<2x3x4x8xf32>) -> tensor<2x3x4x8xf32> {
  %0 = tx.batch_matmul %q, %k : (tensor<2x3x4x8xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x4x4xf32>
  %1 = tx.cast %0 {tx.rounds} : tensor<2x3x4x4xf32> -> tensor<2x3x4x4xbf16>
  %2 = tx.cast %1 {tx.rounds} : tensor<2x3x4x4xbf16> -> tensor<2x3x4x4xf32>
  %3 = tx.softmax %2 : (tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32>
  %4 = tx.batch_matmul %3, %v : (tensor<2x3x4x4xf32>, tensor<2x3x4x8xf32>) -> tensor<2x3x4x8xf32>
  return %4 : tensor<2x3x4x8xf32>
}
