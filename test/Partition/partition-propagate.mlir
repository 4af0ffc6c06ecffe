// RUN: partita-opt %s --split-input-file --partition-propagate | FileCheck %s

module attributes {par.mesh = #par.mesh<dp = 2>} {
train.parameter @w : tensor<4x6xf32>

// Forward along the letters of matmul, through a group of reshape's, into a reduction.
// CHECK-LABEL: @forward
// CHECK: tx.matmul {{.*}}{par.splits = [#par.place<[8 @dp, 6]>]}
// CHECK: tx.reshape {{.*}}{par.splits = [#par.place<[2 @dp, 4, 6]>]}
// CHECK: tx.reshape {{.*}}{par.splits = [#par.place<[2 @dp, 24]>]}
// CHECK: tx.reduce_sum {{.*}} : tensor<2x24xf32> -> tensor<24xf32>
func.func @forward(%x: tensor<8x4xf32> {par.split = #par.place<[8 @dp, 4]>}) -> tensor<24xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %w = train.read @w : tensor<4x6xf32>
  %y = tx.matmul %x, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  %a = tx.reshape %y : tensor<8x6xf32> -> tensor<2x4x6xf32>
  %b = tx.reshape %a : tensor<2x4x6xf32> -> tensor<2x24xf32>
  %s = tx.reduce_sum %b [0] : tensor<2x24xf32> -> tensor<24xf32>
  return %s : tensor<24xf32>
}

// Backward: what is added to a split value is made split where that costs nothing.
// CHECK-LABEL: @backward
// CHECK: tx.broadcast {{.*}}{par.splits = [#par.place<[8 @dp, 4]>]}
// CHECK: tx.add {{.*}}{par.splits = [#par.place<[8 @dp, 4]>]}
func.func @backward(%x: tensor<8x4xf32> {par.split = #par.place<[8 @dp, 4]>}, %b: tensor<4xf32>) -> tensor<8x4xf32> {
  %r = tx.broadcast %b : tensor<4xf32> -> tensor<8x4xf32>
  %y = tx.add %x, %r : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// Into the loop over micro-batches, whose first dimension is not split, and out of it.
// CHECK-LABEL: @loop
// CHECK: tx.neg {{.*}}{par.splits = [#par.place<[8 @dp]>]}
// CHECK: tx.neg {{.*}}{par.splits = [#par.place<[8 @dp]>]}
func.func @loop(%x: tensor<3x8xf32> {par.split = #par.place<[3, 8 @dp]>}) -> tensor<8xf32> {
  %s = train.accumulate (%i = %x) : (tensor<3x8xf32>) -> tensor<8xf32> {
    %y = tx.neg %i : (tensor<8xf32>) -> tensor<8xf32>
    train.yield %y : tensor<8xf32>
  }
  %z = tx.neg %s : (tensor<8xf32>) -> tensor<8xf32>
  return %z : tensor<8xf32>
}
}

// -----

// Within the blocks of a dimension: through a matmul, a bias, a slice that cuts full blocks, and heads.
module attributes {par.mesh = #par.mesh<tp = 2>} {
train.parameter @qkv : tensor<4x12xf32> {par.split = #par.place<[4, 3 x 4 @tp]>}
// CHECK-LABEL: @blocks
// CHECK: train.read @qkv {par.splits = [#par.place<[4, 3 x 4 @tp]>]}
// CHECK: tx.matmul {{.*}}{par.splits = [#par.place<[8, 3 x 4 @tp]>]}
// CHECK: tx.reshape {{.*}}{par.splits = [#par.place<[8, 3, 4 @tp]>]}
// CHECK: tx.slice {{.*}}{par.splits = [#par.place<[8, 4 @tp]>]}
// CHECK: tx.reshape {{.*}}{par.splits = [#par.place<[8, 2 @tp, 2]>]}
func.func @blocks(%x: tensor<8x4xf32>) -> (tensor<8x3x4xf32>, tensor<8x2x2xf32>) {
  %w = train.read @qkv : tensor<4x12xf32>
  %y = tx.matmul %x, %w : (tensor<8x4xf32>, tensor<4x12xf32>) -> tensor<8x12xf32>
  %a = tx.reshape %y : tensor<8x12xf32> -> tensor<8x3x4xf32>
  %k = tx.slice %y [0, 4] by [1, 1] : tensor<8x12xf32> -> tensor<8x4xf32>
  %h = tx.reshape %k : tensor<8x4xf32> -> tensor<8x2x2xf32>
  return %a, %h : tensor<8x3x4xf32>, tensor<8x2x2xf32>
}
}
