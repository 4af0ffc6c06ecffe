// RUN: partita-opt %s --pipe-report | FileCheck %s

module attributes {pipe.stages = 2} {

train.parameter @a : tensor<4x4xf32> {pipe.on = array<i64: 0>}
train.parameter @b : tensor<4x4xf32> {pipe.on = array<i64: 1>}

// The loss is on stage 1 of two, the count everywhere.
// CHECK-LABEL: func.func @train_step
// CHECK: %[[LOSS:.*]] = tx.reduce_sum
// CHECK: %[[ALL:.*]] = pipe.sum %[[LOSS]] on [0, 1] because "values that a step reports" {{.*}}: tensor<f32>
// CHECK-NEXT: return %[[ALL]], %[[COUNT:.*]] :
func.func @train_step(%x: tensor<4x4xf32>, %count: tensor<f32>) -> (tensor<f32>, tensor<f32>) attributes {train.entry_point = #train.entry_point<train_step>} {
  %w = train.read @b : tensor<4x4xf32>
  %0 = tx.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %loss = tx.reduce_sum %0 [0, 1] : tensor<4x4xf32> -> tensor<f32>
  return %loss, %count : tensor<f32>, tensor<f32>
}

// Outputs stay where they are.
// CHECK-LABEL: func.func @forward
// CHECK-NOT: pipe.sum
func.func @forward(%x: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %w = train.read @b : tensor<4x4xf32>
  %0 = tx.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

}
