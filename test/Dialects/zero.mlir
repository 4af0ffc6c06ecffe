// RUN: partita-opt %s --canonicalize | FileCheck %s
// RUN: partita-opt %s | partita-opt | FileCheck %s --check-prefix=TRIP

// The shard of a sum is a reduce-scatter.
// CHECK-LABEL: func @shard_of_sum
// CHECK-NEXT: %[[P:.*]] = zero.reduce_scatter %{{.*}} over "dp" because "gradient"
// CHECK-NEXT: return %[[P]]
// TRIP: zero.shard %{{.*}} over "dp" : tensor<3x5xf32> -> tensor<8xf32, #par.place<[3, 5], flat [dp]>>
module attributes {par.mesh = #par.mesh<dp = 2, fsdp = 2>} {
  func.func @shard_of_sum(%x: tensor<3x5xf32, #par.place<[3, 5], partial [dp]>>) -> tensor<8xf32, #par.place<[3, 5], flat [dp]>> {
    %s = par.all_reduce %x over "dp" because "gradient" : tensor<3x5xf32, #par.place<[3, 5], partial [dp]>> -> tensor<3x5xf32>
    %p = zero.shard %s over "dp" : tensor<3x5xf32> -> tensor<8xf32, #par.place<[3, 5], flat [dp]>>
    return %p : tensor<8xf32, #par.place<[3, 5], flat [dp]>>
  }

  // The full sum is wanted too: the sum stays.
  // CHECK-LABEL: func @full_wanted
  // CHECK: par.all_reduce
  // CHECK: zero.shard
  func.func @full_wanted(%x: tensor<4xf32, #par.place<[4], partial [dp]>>) -> (tensor<2xf32, #par.place<[4], flat [dp]>>, tensor<4xf32>) {
    %s = par.all_reduce %x over "dp" : tensor<4xf32, #par.place<[4], partial [dp]>> -> tensor<4xf32>
    %p = zero.shard %s over "dp" : tensor<4xf32> -> tensor<2xf32, #par.place<[4], flat [dp]>>
    return %p, %s : tensor<2xf32, #par.place<[4], flat [dp]>>, tensor<4xf32>
  }

  // Other ranks sum up shards, whichever sum came first: hybrid sharding.
  // CHECK-LABEL: func @inner_first
  // CHECK-NEXT: %[[P:.*]] = zero.reduce_scatter %{{.*}} over "fsdp" : tensor<4xf32, #par.place<[4], partial [dp, fsdp]>> -> tensor<2xf32, #par.place<[4], partial [dp], flat [fsdp]>>
  // CHECK-NEXT: %[[S:.*]] = par.all_reduce %[[P]] over "dp"
  // CHECK-NEXT: return %[[S]]
  func.func @inner_first(%x: tensor<4xf32, #par.place<[4], partial [dp, fsdp]>>) -> tensor<2xf32, #par.place<[4], flat [fsdp]>> {
    %s = par.all_reduce %x over "fsdp" : tensor<4xf32, #par.place<[4], partial [dp, fsdp]>> -> tensor<4xf32, #par.place<[4], partial [dp]>>
    %t = par.all_reduce %s over "dp" : tensor<4xf32, #par.place<[4], partial [dp]>> -> tensor<4xf32>
    %p = zero.shard %t over "fsdp" : tensor<4xf32> -> tensor<2xf32, #par.place<[4], flat [fsdp]>>
    return %p : tensor<2xf32, #par.place<[4], flat [fsdp]>>
  }
  // CHECK-LABEL: func @outer_first
  // CHECK-NEXT: %[[P:.*]] = zero.reduce_scatter %{{.*}} over "fsdp"
  // CHECK-NEXT: %[[S:.*]] = par.all_reduce %[[P]] over "dp"
  // CHECK-NEXT: return %[[S]]
  func.func @outer_first(%x: tensor<4xf32, #par.place<[4], partial [dp, fsdp]>>) -> tensor<2xf32, #par.place<[4], flat [fsdp]>> {
    %s = par.all_reduce %x over "dp" : tensor<4xf32, #par.place<[4], partial [dp, fsdp]>> -> tensor<4xf32, #par.place<[4], partial [fsdp]>>
    %t = par.all_reduce %s over "fsdp" : tensor<4xf32, #par.place<[4], partial [fsdp]>> -> tensor<4xf32>
    %p = zero.shard %t over "fsdp" : tensor<4xf32> -> tensor<2xf32, #par.place<[4], flat [fsdp]>>
    return %p : tensor<2xf32, #par.place<[4], flat [fsdp]>>
  }

  // There and back again.
  // CHECK-LABEL: func @round_trips
  // CHECK-NEXT: return %arg0, %arg1
  func.func @round_trips(%w: tensor<4xf32>, %p: tensor<2xf32, #par.place<[4], flat [dp]>>) -> (tensor<4xf32>, tensor<2xf32, #par.place<[4], flat [dp]>>) {
    %a = zero.shard %w over "dp" : tensor<4xf32> -> tensor<2xf32, #par.place<[4], flat [dp]>>
    %b = zero.gather %a over "dp" : tensor<2xf32, #par.place<[4], flat [dp]>> -> tensor<4xf32>
    %c = zero.gather %p over "dp" : tensor<2xf32, #par.place<[4], flat [dp]>> -> tensor<4xf32>
    %d = zero.shard %c over "dp" : tensor<4xf32> -> tensor<2xf32, #par.place<[4], flat [dp]>>
    return %b, %d : tensor<4xf32>, tensor<2xf32, #par.place<[4], flat [dp]>>
  }
}

// TRIP: zero.gather %{{.*}} over "dp" again because "parameter"
// TRIP: zero.gather_start %{{.*}}, %{{.*}} over "dp" because "why" : tensor<2xf32, #par.place<[4], flat [dp]>>, tensor<2xf32, #par.place<[3], flat [dp]>> -> i64, tensor<4xf32>, tensor<3xf32>
// TRIP: par.wait
// TRIP: zero.reduce_scatter_start
// TRIP: par.wait
module attributes {par.mesh = #par.mesh<dp = 2>} {
  func.func @forms(%p: tensor<2xf32, #par.place<[4], flat [dp]>>, %q: tensor<2xf32, #par.place<[3], flat [dp]>>, %x: tensor<3xf32, #par.place<[3], partial [dp]>>) -> (tensor<4xf32>, tensor<3xf32>) {
    %0 = zero.gather %p over "dp" again because "parameter" : tensor<2xf32, #par.place<[4], flat [dp]>> -> tensor<4xf32>
    %t, %a, %b = zero.gather_start %p, %q over "dp" because "why" : tensor<2xf32, #par.place<[4], flat [dp]>>, tensor<2xf32, #par.place<[3], flat [dp]>> -> i64, tensor<4xf32>, tensor<3xf32>
    %1:2 = par.wait %t, %a, %b : i64, tensor<4xf32>, tensor<3xf32> -> tensor<4xf32>, tensor<3xf32>
    %u, %c = zero.reduce_scatter_start %x over "dp" : tensor<3xf32, #par.place<[3], partial [dp]>> -> i64, tensor<2xf32, #par.place<[3], flat [dp]>>
    %2 = par.wait %u, %c : i64, tensor<2xf32, #par.place<[3], flat [dp]>> -> tensor<2xf32, #par.place<[3], flat [dp]>>
    return %1#0, %1#1 : tensor<4xf32>, tensor<3xf32>
  }
}
