// RUN: partita-opt %s --partition-seed-annotated -split-input-file -verify-diagnostics
// RUN: not partita-opt %S/Inputs/mlp.mlir --partition-seed-annotated=configuration=pair 2>&1 | FileCheck %s
// CHECK: error: configuration 'pair': the model's file has no device configurations

// expected-remark @+1 {{the model's file has sharding annotations for 'pair' (2 devices); the mesh has 4 ranks, so they are not followed; --configuration none says so without a remark}}
module attributes {par.mesh = #par.mesh<tp = 4>, train.configurations = {pair = {devices = 2, stages = 0, tensors = 1}}} {
}

// -----

// expected-error @+2 {{the model's file has several device configurations for this mesh: 'a' (2 devices), 'b' (2 devices); which one?}}
// expected-note @+1 {{--configuration none leaves the annotations of the model's file aside}}
module attributes {par.mesh = #par.mesh<tp = 2>, train.configurations = {a = {devices = 2}, b = {devices = 2}}} {
}

// -----

// expected-error @+2 {{device configuration 'a': its nodes are in 2 pipeline stages, and annotations place no layers; --mesh pp=2 splits a model that has none into as many, and --stages says where}}
// expected-note @+1 {{--configuration none leaves the annotations of the model's file aside}}
module attributes {par.mesh = #par.mesh<tp = 2>, train.configurations = {a = {devices = 2, stages = 2}}} {
}

// -----

// The devices' order is no axis: ranks 0 and 1 are neighbours along tp.
#n = #train.sharding<"a" by "n", dims = [1], blocks = [1], shards = [2], devices = [array<i64: 0, 3>, array<i64: 1, 2>]>
// expected-note @+1 {{--configuration none leaves the annotations of the model's file aside}}
module attributes {par.mesh = #par.mesh<dp = 2, tp = 2>, train.configurations = {a = {devices = 4, tensors = 1}}} {
  // expected-error @+1 {{device configuration 'a': node 'n': the devices along dimension 1 are not an axis of the mesh, whose devices are dp=2,tp=2 with the last axis counting fastest, each holding a shard: #train.sharding<"a" by "n"}}
  train.parameter @w : tensor<4x16xf32> {train.shardings = [#n]}
  func.func @forward(%x: tensor<8x4xf32>) -> tensor<8x16xf32> attributes {train.entry_point = #train.entry_point<forward>} {
    %w = train.read @w : tensor<4x16xf32>
    %0 = tx.matmul %x, %w : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
    return %0 : tensor<8x16xf32>
  }
}

// -----

// A fused weight in contiguous shards.
#n = #train.sharding<"a" by "n", dims = [1], blocks = [1], shards = [2], devices = [array<i64: 0>, array<i64: 1>]>
// expected-error @+2 {{device configuration 'a': node 'n': dimension 1 of 'w' cannot be split: 'tx.slice' cannot be split along dimension 1 of size 24; each of 3 blocks of it may do}}
// expected-note @+1 {{--configuration none leaves the annotations of the model's file aside}}
module attributes {par.mesh = #par.mesh<tp = 2>, train.configurations = {a = {devices = 2, tensors = 1}}} {
  train.parameter @w : tensor<4x24xf32> {train.shardings = [#n]}
  func.func @forward(%x: tensor<8x4xf32>) -> tensor<8x8xf32> attributes {train.entry_point = #train.entry_point<forward>} {
    %w = train.read @w : tensor<4x24xf32>
    %0 = tx.matmul %x, %w : (tensor<8x4xf32>, tensor<4x24xf32>) -> tensor<8x24xf32>
    // expected-note @+1 {{here}}
    %1 = tx.slice %0 [0, 8] by [1, 1] : tensor<8x24xf32> -> tensor<8x8xf32>
    return %1 : tensor<8x8xf32>
  }
}

// -----

// Two annotations that contradict each other; and the command line.
#up = #train.sharding<"a" by "n", dims = [1], blocks = [1], shards = [2], devices = [array<i64: 0>, array<i64: 1>]>
#full = #train.sharding<"a" by "m", dims = [], blocks = [], shards = [], devices = [array<i64: 0, 1>]>
// expected-error @+2 {{device configuration 'a': node 'n': dimension 1 of 'up' cannot be split: it would split 'down', which 'a, node m' keeps full}}
// expected-note @+1 {{--configuration none leaves the annotations of the model's file aside}}
module attributes {par.mesh = #par.mesh<tp = 2>, train.configurations = {a = {devices = 2, tensors = 2}}} {
  train.parameter @up : tensor<4x16xf32> {train.shardings = [#up]}
  train.parameter @down : tensor<16x4xf32> {train.shardings = [#full]}
  func.func @forward(%x: tensor<8x4xf32>) -> tensor<8x4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
    %up = train.read @up : tensor<4x16xf32>
    %down = train.read @down : tensor<16x4xf32>
    %0 = tx.matmul %x, %up : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
    // expected-note @+1 {{here}}
    %1 = tx.matmul %0, %down : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
    return %1 : tensor<8x4xf32>
  }
}

// -----

#full = #train.sharding<"a" by "m", dims = [], blocks = [], shards = [], devices = [array<i64: 0, 1>]>
// expected-error @+2 {{device configuration 'a': node 'm' keeps 'up' full, and the user splits it over "tp" along dimension 1; one of the two must go}}
// expected-note @+1 {{--configuration none leaves the annotations of the model's file aside}}
module attributes {par.mesh = #par.mesh<tp = 2>, train.configurations = {a = {devices = 2, tensors = 1}}} {
  train.parameter @up : tensor<4x16xf32> {par.split = #par.place<[4, 16 @tp]>, train.shardings = [#full]}
}

// -----

// A result whose annotation cannot be followed: what it says is a wish. And one of two is not to be found.
#n = #train.sharding<"a" by "n", dims = [0], blocks = [1], shards = [2], devices = [array<i64: 0>, array<i64: 1>]>
// expected-remark @+1 {{device configuration 'a': 1 of 2 annotated tensors are inputs or inside other operations by now; the rules decide how they are split}}
module attributes {par.mesh = #par.mesh<tp = 2>, train.configurations = {a = {devices = 2, tensors = 2}}} {
  func.func @forward(%x: tensor<8x4xf32>) -> tensor<8x4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
    // expected-note @+2 {{here}}
    // expected-remark @+1 {{device configuration 'a': node 'n': dimension 0 of 'n' cannot be split: tp would split an input}}
    %0 = tx.relu %x {train.shardings = [#n]} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}

// -----

#n = #train.sharding<"a" by "n", dims = [2], blocks = [1], shards = [2], devices = [array<i64: 0>, array<i64: 1>]>
// expected-note @+1 {{--configuration none leaves the annotations of the model's file aside}}
module attributes {par.mesh = #par.mesh<tp = 2>, train.configurations = {a = {devices = 2, tensors = 2}}} {
  func.func @forward(%x: tensor<8x4xf32>) -> tensor<8x4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
    // expected-error @+1 {{has no dimension 2: #train.sharding}}
    %0 = tx.relu %x {train.shardings = [#n]} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}

// -----

// expected-error @+1 {{has 2 groups of devices, which is not one array for each shard}}
module attributes {x = #train.sharding<"a" by "n", dims = [2], blocks = [1], shards = [3], devices = [array<i64: 0>, array<i64: 1>]>} {
}

// -----

// expected-error @+1 {{has 1 dims, 0 blocks and 1 shards; every split has one of each}}
module attributes {x = #train.sharding<"a" by "n", dims = [2], blocks = [], shards = [3], devices = []>} {
}

// -----

// expected-error @+1 {{has a dimension below 0, less than one block or less than two shards}}
module attributes {x = #train.sharding<"a" by "n", dims = [2], blocks = [1], shards = [1], devices = []>} {
}
