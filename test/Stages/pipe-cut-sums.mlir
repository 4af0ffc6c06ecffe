// Both terms are on stage 1, and stage 0 adds zeros to each sum: equal ops, which must not be merged, since stage 1 has two.
// RUN: partita-opt %s --pass-pipeline='builtin.module(pipe-agree,pipe-cut,builtin.module(canonicalize,cse))' | FileCheck %s

module attributes {pipe.stages = 2} {
train.parameter @a : tensor<4xf32> {pipe.on = array<i64: 0, 1>}
train.parameter @b : tensor<4xf32> {pipe.on = array<i64: 0, 1>}

// CHECK-LABEL: module attributes {{.*}}pipe.stage = 0
// CHECK: %[[ZERO:.*]] = tx.constant dense<0.000000e+00>
// CHECK: %[[A:.*]] = pipe.sum %[[ZERO]] on [0, 1] {pipe.number = 0 : i64}
// CHECK: %[[B:.*]] = pipe.sum %[[ZERO]] on [0, 1] {pipe.number = 1 : i64}
// CHECK: train.write @a, %[[A]]
// CHECK: train.write @b, %[[B]]
// CHECK-LABEL: module attributes {{.*}}pipe.stage = 1
// CHECK: %[[GA:.*]] = tx.exp
// CHECK: %[[GB:.*]] = tx.tanh
// CHECK: %[[A:.*]] = pipe.sum %[[GA]] on [0, 1] {pipe.number = 0 : i64}
// CHECK: %[[B:.*]] = pipe.sum %[[GB]] on [0, 1] {pipe.number = 1 : i64}
// CHECK: train.write @a, %[[A]]
// CHECK: train.write @b, %[[B]]
func.func @step() {
  %a = train.read @a : tensor<4xf32>
  %b = train.read @b : tensor<4xf32>
  %0 = pipe.share %a on [0, 1] : tensor<4xf32>
  %1 = pipe.share %b on [0, 1] : tensor<4xf32>
  %2 = pipe.pin %0 to 1 : tensor<4xf32>
  %3 = pipe.pin %1 to 1 : tensor<4xf32>
  %4 = tx.exp %2 : (tensor<4xf32>) -> tensor<4xf32>
  %5 = tx.tanh %3 : (tensor<4xf32>) -> tensor<4xf32>
  %6 = pipe.sum %4 on [0, 1] : tensor<4xf32>
  %7 = pipe.sum %5 on [0, 1] : tensor<4xf32>
  train.write @a, %6 : tensor<4xf32>
  train.write @b, %7 : tensor<4xf32>
  return
}
}
