// RUN: partita-opt %s --partition-verify | FileCheck %s

// What the phase promises: shards of the right size, a minimized value that is complete on every rank.
// CHECK-LABEL: func.func @kept
module attributes {par.mesh = #par.mesh<dp = 2>} {
func.func @kept(%x: tensor<4xf32, #par.place<[8 @dp]>>) -> tensor<4xf32, #par.place<[8 @dp]>> {
  %s = tx.reduce_sum %x [0] : tensor<4xf32, #par.place<[8 @dp]>> -> tensor<f32, #par.place<[], partial [dp]>>
  %g = par.g %s over "dp" : tensor<f32, #par.place<[], partial [dp]>> -> tensor<f32>
  train.minimize %g : tensor<f32>
  return %x : tensor<4xf32, #par.place<[8 @dp]>>
}
}
