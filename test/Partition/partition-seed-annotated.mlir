// RUN: partita-opt %s --partition-seed-annotated -split-input-file | FileCheck %s
// RUN: partita-opt %s --partition-seed-annotated=configuration=none -split-input-file | FileCheck %s --check-prefix=NONE

// The columns of one weight are the rows of the next.
// CHECK-LABEL: module
// CHECK-NOT: train.configurations
// CHECK: train.parameter @up : tensor<4x16xf32> {par.seeds = {tp = #par.seed<"annotation" "pair, node 'up_proj'" of ["up@1", "down@0"]>}, par.split = #par.place<[4, 16 @tp]>}
// CHECK: train.parameter @down : tensor<16x4xf32> {{{.*}}par.split = #par.place<[16 @tp, 4]>}
// CHECK-NOT: train.shardings
// NONE: module
// NONE-NOT: #par.place<[4, 16 @tp]>
// NONE-NOT: train.shardings
#pair = #train.sharding<"pair" by "up_proj", dims = [1], blocks = [1], shards = [2], devices = [array<i64: 0>, array<i64: 1>]>
module attributes {par.mesh = #par.mesh<tp = 2>, train.configurations = {pair = {devices = 2, stages = 0, tensors = 1}}} {
  train.parameter @up : tensor<4x16xf32> {train.shardings = [#pair]}
  train.parameter @down : tensor<16x4xf32>
  func.func @forward(%x: tensor<8x4xf32>) -> tensor<8x4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
    %up = train.read @up : tensor<4x16xf32>
    %down = train.read @down : tensor<16x4xf32>
    %0 = tx.matmul %x, %up : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
    %1 = tx.gelu %0 : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %2 = tx.matmul %1, %down : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
    return %2 : tensor<8x4xf32>
  }
}

// -----

// Four devices are two replicas of the model: rank 2 is device 0 of the second one. A fused weight is split within
// its blocks, a parameter on all devices stays full, and a result takes its parameter with it.
// CHECK-LABEL: module
// CHECK: train.parameter @qkv : tensor<4x24xf32> {{{.*}}par.split = #par.place<[4, 3 x 8 @tp]>}
// CHECK: train.parameter @full : tensor<4x16xf32> {par.full = "whole, node n2"}
// CHECK: train.parameter @by_result : tensor<4x16xf32> {{{.*}}par.split = #par.place<[4, 16 @tp]>}
#qkv = #train.sharding<"whole" by "n1", dims = [1], blocks = [3], shards = [2], devices = [array<i64: 0, 2>, array<i64: 1, 3>]>
#all = #train.sharding<"whole" by "n2", dims = [], blocks = [], shards = [], devices = [array<i64: 0, 1, 2, 3>]>
#result = #train.sharding<"whole" by "n3", dims = [0, 1], blocks = [1, 1], shards = [2, 2], devices = [array<i64: 0>, array<i64: 1>, array<i64: 2>, array<i64: 3>]>
module attributes {par.mesh = #par.mesh<dp = 2, tp = 2>, train.configurations = {other = {devices = 8, stages = 0, tensors = 1}, whole = {devices = 4, stages = 1, tensors = 3}}} {
  train.parameter @qkv : tensor<4x24xf32> {train.shardings = [#qkv]}
  train.parameter @full : tensor<4x16xf32> {train.shardings = [#all]}
  train.parameter @by_result : tensor<4x16xf32>
  func.func @forward(%x: tensor<8x4xf32> {par.split = #par.place<[8 @dp, 4]>}) -> (tensor<8x8xf32>, tensor<8x16xf32>, tensor<8x16xf32>) attributes {train.entry_point = #train.entry_point<forward>} {
    %qkv = train.read @qkv : tensor<4x24xf32>
    %full = train.read @full : tensor<4x16xf32>
    %by = train.read @by_result : tensor<4x16xf32>
    %0 = tx.matmul %x, %qkv : (tensor<8x4xf32>, tensor<4x24xf32>) -> tensor<8x24xf32>
    %1 = tx.slice %0 [0, 8] by [1, 1] : tensor<8x24xf32> -> tensor<8x8xf32>
    %2 = tx.matmul %x, %full : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
    %3 = tx.matmul %x, %by {train.shardings = [#result]} : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
    return %1, %2, %3 : tensor<8x8xf32>, tensor<8x16xf32>, tensor<8x16xf32>
  }
}

// -----

// One of one replica's devices.
// CHECK-LABEL: module
// CHECK: train.parameter @up : tensor<4x16xf32> {{{.*}}par.split = #par.place<[4, 16 @tp]>}
#pair = #train.sharding<"pair" by "up_proj", dims = [1], blocks = [1], shards = [2], devices = [array<i64: 0>, array<i64: 1>]>
module attributes {par.mesh = #par.mesh<dp = 4, tp = 2>, train.configurations = {pair = {devices = 2, stages = 0, tensors = 1}}} {
  train.parameter @up : tensor<4x16xf32> {train.shardings = [#pair]}
  func.func @forward(%x: tensor<8x4xf32>) -> tensor<8x16xf32> attributes {train.entry_point = #train.entry_point<forward>} {
    %up = train.read @up : tensor<4x16xf32>
    %0 = tx.matmul %x, %up : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
    return %0 : tensor<8x16xf32>
  }
}
