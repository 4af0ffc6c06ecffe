// Parts of a sum go through ops that are linear in them: each stage computes with its own part.
// RUN: partita-opt %s --pipe-cut | FileCheck %s

module attributes {pipe.stages = 2} {
train.parameter @a : tensor<4x4xf32> {pipe.on = array<i64: 0>}
train.parameter @b : tensor<4x4xf32> {pipe.on = array<i64: 1>}

// CHECK-LABEL: module attributes {{.*}}pipe.stage = 0
// CHECK-DAG: %[[A:.*]] = train.read @a
// CHECK-DAG: %[[ZERO:.*]] = tx.constant dense<0.000000e+00>
// CHECK: %[[GELU:.*]] = tx.gelu_grad %{{.*}}, %[[A]]
// CHECK: %[[SOME:.*]] = tx.select %{{.*}}, %[[GELU]], %[[ZERO]]
// CHECK: pipe.sum %[[SOME]] on [0, 1]
// CHECK-LABEL: module attributes {{.*}}pipe.stage = 1
// CHECK: %[[B:.*]] = train.read @b
// CHECK: %[[GELU:.*]] = tx.gelu_grad %{{.*}}, %[[B]]
// CHECK: %[[SOME:.*]] = tx.select %{{.*}}, %[[GELU]],
// CHECK: pipe.sum %[[SOME]] on [0, 1]
func.func @f(%x: tensor<4x4xf32>, %c: tensor<4x4xi1>) -> tensor<4x4xf32> {
  %a = train.read @a : tensor<4x4xf32>
  %b = train.read @b : tensor<4x4xf32>
  %zero = tx.constant dense<0.0> : tensor<4x4xf32> : tensor<4x4xf32>
  %dy = tx.add %a, %b : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %0 = tx.gelu_grad %x, %dy : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // Linear in both together; the other one is zero.
  %1 = tx.select %c, %0, %zero : (tensor<4x4xi1>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = pipe.sum %1 on [0, 1] : tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}
}
