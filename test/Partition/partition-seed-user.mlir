// RUN: partita-opt %s --partition-seed-user=shard=up=tp@1,qkv=tp@1,k?y*=replicated | FileCheck %s

// The columns of one weight are the rows of the next; a fused projection is split within its blocks.
// CHECK: train.parameter @up : tensor<4x16xf32> {{{.*}}par.split = #par.place<[4, 16 @tp]>}
// CHECK: train.parameter @down : tensor<16x4xf32> {{{.*}}par.split = #par.place<[16 @tp, 4]>}
// CHECK: train.parameter @qkv : tensor<4x24xf32> {{{.*}}par.split = #par.place<[4, 3 x 8 @tp]>}
// CHECK: train.parameter @key_up : tensor<4x16xf32> {par.full = "k?y*=replicated"}
module attributes {par.mesh = #par.mesh<dp = 2, tp = 2>} {
  train.parameter @up : tensor<4x16xf32>
  train.parameter @down : tensor<16x4xf32>
  train.parameter @qkv : tensor<4x24xf32>
  train.parameter @key_up : tensor<4x16xf32>
  func.func @forward(%x: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x8xf32>, tensor<8x16xf32>) attributes {train.entry_point = #train.entry_point<forward>} {
    %up = train.read @up : tensor<4x16xf32>
    %down = train.read @down : tensor<16x4xf32>
    %qkv = train.read @qkv : tensor<4x24xf32>
    %keyUp = train.read @key_up : tensor<4x16xf32>
    %0 = tx.matmul %x, %up : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
    %1 = tx.gelu %0 : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %2 = tx.matmul %1, %down : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
    %3 = tx.matmul %x, %qkv : (tensor<8x4xf32>, tensor<4x24xf32>) -> tensor<8x24xf32>
    %4 = tx.slice %3 [0, 8] by [1, 1] : tensor<8x24xf32> -> tensor<8x8xf32>
    %5 = tx.matmul %x, %keyUp : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
    return %2, %4, %5 : tensor<8x4xf32>, tensor<8x8xf32>, tensor<8x16xf32>
  }
}
