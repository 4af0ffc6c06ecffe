// RUN: partita-opt %s --bucket-gathers=bytes=32 | FileCheck %s
// RUN: not partita-opt %s --bucket-gathers=bytes=-1 2>&1 | FileCheck %s --check-prefix=BYTES
// BYTES: error: bucket of -1 bytes, expected at least 1, or 0 for a share of all

// 16 bytes each: two fill a bucket, which stands after its last update; what is gathered for its use stays.
!shard = tensor<2xf32, #par.place<[4], flat [dp]>>
module attributes {par.mesh = #par.mesh<dp = 2>} {
  train.parameter @p : tensor<4xf32>
  // CHECK-LABEL: func.func @example
  // CHECK: zero.gather %{{[^,]*}} over "dp" because "parameter"
  // CHECK: %[[U:.*]] = train.sgd
  // CHECK-NEXT: %[[V:.*]] = train.sgd
  // CHECK-NEXT: %[[UV:.*]]:2 = zero.gather %[[U]], %[[V]] over "dp" because "updated parameter"
  // CHECK-NEXT: %[[W:.*]] = train.sgd
  // CHECK-NEXT: zero.gather %[[W]] over
  func.func @example(%a: !shard, %b: !shard, %c: !shard, %g: !shard, %rate: tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) attributes {par.no_cotangents} {
    %p = train.read @p : !shard
    %0 = zero.gather %p over "dp" because "parameter" : !shard -> tensor<4xf32>
    %u = train.sgd %a, %g, %rate {decay = 0.0} : (!shard, !shard, tensor<f32>) -> !shard
    %1 = zero.gather %u over "dp" because "updated parameter" : !shard -> tensor<4xf32>
    %v = train.sgd %b, %g, %rate {decay = 0.0} : (!shard, !shard, tensor<f32>) -> !shard
    %2 = zero.gather %v over "dp" because "updated parameter" : !shard -> tensor<4xf32>
    %w = train.sgd %c, %g, %rate {decay = 0.0} : (!shard, !shard, tensor<f32>) -> !shard
    %3 = zero.gather %w over "dp" because "updated parameter" : !shard -> tensor<4xf32>
    return %0, %1, %2, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
}
