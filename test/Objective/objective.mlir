// RUN: partita-opt %s --objective=accumulate=2 | FileCheck %s
// RUN: partita-opt %s --objective="freeze=w* kind=none" | FileCheck %s --check-prefix=FROZEN
// RUN: partita-opt %s --objective="trainable=val_3 tie=wpe=val_3 kind=none" | FileCheck %s --check-prefix=TRAINABLE
// RUN: partita-opt %s --objective=kind=none | FileCheck %s --check-prefix=NONE

// CHECK-LABEL: func.func @forward(%arg0: tensor<8x16xi64> {train.batch = 0 : i64, train.role = "ids"})
// CHECK-LABEL: func.func @eval_step
// CHECK-SAME: (%arg0: tensor<8x16xi64> {{.*}}train.role = "ids"}, %arg1: tensor<8x16xi64> {{.*}}train.role = "labels"})
// CHECK-SAME: -> (tensor<f32> {train.name = "loss"}, tensor<f32> {train.name = "token_count"})
// CHECK-NOT: train.minimize
// CHECK-LABEL: func.func @train_step
// CHECK-SAME: (%arg0: tensor<2x8x16xi64> {train.batch = 1{{.*}} : i64, {{.*}}}, %arg1: tensor<2x8x16xi64> {train.batch = 1 : i64
// CHECK: %[[COUNT:.*]] = train.token_count %arg1 ignore -100{{.*}} : (tensor<2x8x16xi64>) -> tensor<f32>
// CHECK: %[[SHARE:.*]] = tx.reciprocal %[[COUNT]]
// CHECK: %[[LOSS:.*]] = train.accumulate (%[[I:.*]] = %arg0, %[[L:.*]] = %arg1)
// CHECK:   tx.embedding %{{.*}}, %[[I]]
// CHECK:   %[[TOKENS:.*]], %{{.*}} = tx.cross_entropy %{{.*}}, %[[L]] ignore -100
// CHECK:   %[[SUM:.*]] = tx.reduce_sum %[[TOKENS]] [0, 1]
// CHECK:   %[[PART:.*]] = tx.mul %[[SUM]], %[[SHARE]]
// CHECK:   train.yield %[[PART]]
// CHECK: train.minimize %[[LOSS]]
// CHECK: return %[[LOSS]], %[[COUNT]]
train.parameter @wte : tensor<256x4xf32>
func.func @forward(%ids: tensor<8x16xi64>) -> tensor<8x16x256xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %w = train.read @wte : tensor<256x4xf32>
  %x = tx.embedding %w, %ids : (tensor<256x4xf32>, tensor<8x16xi64>) -> tensor<8x16x4xf32>
  %y = tx.matmul_nt %x, %w : (tensor<8x16x4xf32>, tensor<256x4xf32>) -> tensor<8x16x256xf32>
  return %y : tensor<8x16x256xf32>
}

// FROZEN: train.parameter @wte : tensor<256x4xf32> frozen

// NONE: func.func @forward(%arg0: tensor<8x16xi64> {train.batch = 0 : i64, train.role = "ids"})
// NONE-NOT: @train_step

// What import has frozen, by a name that it has in the file.
// TRAINABLE: train.parameter @wpe : tensor<4x8xf32> {train.tensors
train.parameter @wpe : tensor<4x8xf32> frozen {train.tensors = [#train.stored<name = "val_3", transposed = true>]}
