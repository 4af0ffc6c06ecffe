// RUN: partita-opt %s --partition-seed-sequence | FileCheck %s

// What gathers for ops of no layer is of the layer of what it gathers: the return, and whatever import leaves without.
// CHECK: par.all_gather %{{.*}} over "tp" along 1 {train.layer = #train.layer<0 of 1>}
// CHECK-NEXT: tx.matmul
module attributes {par.mesh = #par.mesh<tp = 2>} {
  train.parameter @w : tensor<4xf32>
  train.parameter @up : tensor<4x16xf32> {par.split = #par.place<[4, 16 @tp]>}
  train.parameter @down : tensor<16x4xf32> {par.split = #par.place<[16 @tp, 4]>}
  func.func @forward(%x: tensor<2x8x4xf32> {train.batch = 0}) -> tensor<2x8x16xf32> attributes {train.entry_point = #train.entry_point<forward>} {
    %w = train.read @w : tensor<4xf32>
    %up = train.read @up : tensor<4x16xf32>
    %down = train.read @down : tensor<16x4xf32>
    %a = tx.matmul %x, %up {train.layer = #train.layer<0 of 1>} : (tensor<2x8x4xf32>, tensor<4x16xf32>) -> tensor<2x8x16xf32>
    %h = tx.matmul %a, %down {train.layer = #train.layer<0 of 1>} : (tensor<2x8x16xf32>, tensor<16x4xf32>) -> tensor<2x8x4xf32>
    %r = tx.add %x, %h {train.layer = #train.layer<0 of 1>} : (tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
    %y, %rstd = tx.rms_norm %r, %w eps 1.0e-6 {train.layer = #train.layer<0 of 1>} : (tensor<2x8x4xf32>, tensor<4xf32>) -> (tensor<2x8x4xf32>, tensor<2x8xf32>)
    %u = tx.matmul %y, %up : (tensor<2x8x4xf32>, tensor<4x16xf32>) -> tensor<2x8x16xf32>
    return %u : tensor<2x8x16xf32>
  }
}
