// Collectives on four ranks, and what each rank holds of a value.
// RUN: echo 0 1 2 3 4 5 6 7 > %t.txt
// RUN: partita-interp %s --entry reduce --inputs %t.txt | FileCheck %s --check-prefix=REDUCE
// RUN: partita-interp %s --entry split --inputs %t.txt | FileCheck %s --check-prefix=SPLIT
// RUN: partita-interp %s --entry spellings | FileCheck %s
// RUN: partita-interp %s --entry completed --inputs %t.txt | FileCheck %s --check-prefix=COMPLETED

!partial = tensor<4xf32, #par.place<[4], partial [dp]>>
!shard = tensor<2xf32, #par.place<[4], flat [dp]>>
module attributes {par.mesh = #par.mesh<dp = 2, tp = 2>} {

// Rank (d, t) holds row d and two columns of the argument, 0 to 7 as 2x4; the rows' sum.
// REDUCE: result 0: 4 = [4, 6, 8, 10]
func.func @reduce(%x: tensor<1x2xf32, #par.place<[2 @dp, 4 @tp]>>) -> tensor<2xf32, #par.place<[4 @tp]>> {
  %s = tx.reduce_sum %x [0] : tensor<1x2xf32, #par.place<[2 @dp, 4 @tp]>> -> tensor<2xf32, #par.place<[4 @tp], partial [dp]>>
  %r = par.g %s over "dp" : tensor<2xf32, #par.place<[4 @tp], partial [dp]>> -> tensor<2xf32, #par.place<[4 @tp]>>
  return %r : tensor<2xf32, #par.place<[4 @tp]>>
}

// One dimension over both axes, dp outermost, transposed and joined again.
// SPLIT: result 0: 8x1 = {{\[\[}}0], [1], [2], [3], [4], [5], [6], [7]]
func.func @split(%x: tensor<1x2xf32, #par.place<[1, 8 @dp @tp]>>) -> tensor<2x1xf32, #par.place<[8 @dp @tp, 1]>> {
  %0 = tx.transpose %x [1, 0] : tensor<1x2xf32, #par.place<[1, 8 @dp @tp]>> -> tensor<2x1xf32, #par.place<[8 @dp @tp, 1]>>
  return %0 : tensor<2x1xf32, #par.place<[8 @dp @tp, 1]>>
}

// All three spellings of a sum.
// CHECK: result 0: = 4
// CHECK-NEXT: result 1: = 4
// CHECK-NEXT: result 2: = 4
func.func @spellings() -> (tensor<f32>, tensor<f32>, tensor<f32>) attributes {par.no_cotangents} {
  %x = tx.constant dense<1.0> : tensor<2xf32> : tensor<2xf32, #par.place<[4 @dp]>>
  %s = tx.reduce_sum %x [0] : tensor<2xf32, #par.place<[4 @dp]>> -> tensor<f32, #par.place<[], partial [dp]>>
  %g = par.g %s over "dp" : tensor<f32, #par.place<[], partial [dp]>> -> tensor<f32>
  %a = par.all_reduce %s over "dp" : tensor<f32, #par.place<[], partial [dp]>> -> tensor<f32>
  %token = par.all_reduce_start %s over "dp" : tensor<f32, #par.place<[], partial [dp]>> -> i64
  par.poll over "dp" bytes 65536
  %w = par.wait %token, %s : i64, tensor<f32, #par.place<[], partial [dp]>> -> tensor<f32>
  return %g, %a, %w : tensor<f32>, tensor<f32>, tensor<f32>
}

// A wait yields what its start says: a sum, the shards of a sum, full values.
// COMPLETED: result 0: 4 = [4, 6, 8, 10]
// COMPLETED-NEXT: result 1: 4 = [4, 6, 8, 10]
// COMPLETED-NEXT: result 2: 4 = [4, 6, 8, 10]
func.func @completed(%x: tensor<1x4xf32, #par.place<[2 @dp, 4]>>) -> (tensor<4xf32>, !shard, tensor<4xf32>) attributes {par.no_cotangents} {
  %s = tx.reduce_sum %x [0] : tensor<1x4xf32, #par.place<[2 @dp, 4]>> -> !partial
  %token = par.all_reduce_start %s over "dp" : !partial -> i64
  %scattering, %shard = zero.reduce_scatter_start %s over "dp" : !partial -> i64, !shard
  %summed = par.wait %token, %s : i64, !partial -> tensor<4xf32>
  %scattered = par.wait %scattering, %shard : i64, !shard -> !shard
  %gathering, %full = zero.gather_start %scattered over "dp" : !shard -> i64, tensor<4xf32>
  %gathered = par.wait %gathering, %full : i64, tensor<4xf32> -> tensor<4xf32>
  return %summed, %scattered, %gathered : tensor<4xf32>, !shard, tensor<4xf32>
}
}
