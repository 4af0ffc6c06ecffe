// RUN: partita-opt %s --load-pass-plugin=%plugin --pass-pipeline='builtin.module(compress-gradients)' --pass-statistics 2>&1 | FileCheck %s
// CHECK: compress-gradients: 64 bytes (bytes that are no longer communicated)
// CHECK: compress-gradients: 1 compressed (all-reduces that now communicate bfloat16)

// A gradient is cast on both sides of its all-reduce; the casts are of the backward pass as well. The loss keeps its type, and so
// does a gradient that has 16 bits.
// CHECK-LABEL: func.func @train_step(
// CHECK: %[[LOSS:.*]] = par.all_reduce %arg0 over "dp" : tensor<f32, {{.*}}> -> tensor<f32>
// CHECK: %[[NARROW:.*]] = tx.cast %arg1 {train.backward} : {{.*}} -> tensor<4x8xbf16, #par.place<[4, 8], partial [dp]>>
// CHECK: %[[SUM:.*]] = par.all_reduce %[[NARROW]] over "dp" because "gradient" {train.backward}
// CHECK-SAME: -> tensor<4x8xbf16>
// CHECK: %[[WIDE:.*]] = tx.cast %[[SUM]] {train.backward} : tensor<4x8xbf16> -> tensor<4x8xf32>
// CHECK: %[[HALF:.*]] = par.all_reduce %arg2 over "dp" {train.backward}
// CHECK: return %[[LOSS]], %[[WIDE]], %[[HALF]]
module attributes {par.mesh = #par.mesh<dp = 2>} {
  func.func @train_step(%loss: tensor<f32, #par.place<[], partial [dp]>>, %g: tensor<4x8xf32, #par.place<[4, 8], partial [dp]>>, %h: tensor<4xf16, #par.place<[4], partial [dp]>>) -> (tensor<f32>, tensor<4x8xf32>, tensor<4xf16>) attributes {train.entry_point = #train.entry_point<train_step>} {
    %0 = par.all_reduce %loss over "dp" : tensor<f32, #par.place<[], partial [dp]>> -> tensor<f32>
    %1 = par.all_reduce %g over "dp" because "gradient" {train.backward} : tensor<4x8xf32, #par.place<[4, 8], partial [dp]>> -> tensor<4x8xf32>
    %2 = par.all_reduce %h over "dp" {train.backward} : tensor<4xf16, #par.place<[4], partial [dp]>> -> tensor<4xf16>
    return %0, %1, %2 : tensor<f32>, tensor<4x8xf32>, tensor<4xf16>
  }
}
