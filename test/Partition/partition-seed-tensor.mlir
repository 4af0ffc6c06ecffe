// RUN: partita-opt %s --split-input-file --partition-seed-tensor | FileCheck %s

// Columns, then rows: the inner dimension is a family of its own. The outer one runs through a norm.
// CHECK: train.parameter @w : tensor<4xf32>
// CHECK-NOT: par.split
// CHECK: train.parameter @up : tensor<4x16xf32> {{{.*}}par.split = #par.place<[4, 16 @tp]>}
// CHECK: train.parameter @bias : tensor<16xf32> {{{.*}}par.split = #par.place<[16 @tp]>}
// CHECK: train.parameter @down : tensor<16x4xf32> {{{.*}}par.split = #par.place<[16 @tp, 4]>}
module attributes {par.mesh = #par.mesh<dp = 2, tp = 2>} {
  train.parameter @w : tensor<4xf32>
  train.parameter @up : tensor<4x16xf32>
  train.parameter @bias : tensor<16xf32>
  train.parameter @down : tensor<16x4xf32>
  func.func @forward(%x: tensor<8x4xf32>) -> tensor<8x4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
    %w = train.read @w : tensor<4xf32>
    %up = train.read @up : tensor<4x16xf32>
    %bias = train.read @bias : tensor<16xf32>
    %down = train.read @down : tensor<16x4xf32>
    %n, %mean, %rstd = tx.layer_norm %x, %w, %w eps 1.0e-5 : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8x4xf32>, tensor<8xf32>, tensor<8xf32>)
    %0 = tx.matmul %n, %up : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
    %1 = tx.broadcast %bias : tensor<16xf32> -> tensor<8x16xf32>
    %2 = tx.add %0, %1 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    %3 = tx.gelu %2 : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %4 = tx.matmul %3, %down : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
    %n2, %mean2, %rstd2 = tx.layer_norm %4, %w, %w eps 1.0e-5 : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8x4xf32>, tensor<8xf32>, tensor<8xf32>)
    return %n2 : tensor<8x4xf32>
  }
}

// -----

// A fused projection of queries, keys and values is split by heads: within its three blocks.
// CHECK: train.parameter @qkv : tensor<8x24xf32> {{{.*}}par.split = #par.place<[8, 3 x 8 @tp]>}
// CHECK: train.parameter @out : tensor<8x8xf32> {{{.*}}par.split = #par.place<[8 @tp, 8]>}
module attributes {par.mesh = #par.mesh<tp = 2>} {
  train.parameter @qkv : tensor<8x24xf32>
  train.parameter @out : tensor<8x8xf32>
  func.func @forward(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> attributes {train.entry_point = #train.entry_point<forward>} {
    %qkv = train.read @qkv : tensor<8x24xf32>
    %out = train.read @out : tensor<8x8xf32>
    %in = tx.softmax %x : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %0 = tx.matmul %in, %qkv : (tensor<2x4x8xf32>, tensor<8x24xf32>) -> tensor<2x4x24xf32>
    %q = tx.slice %0 [0, 0, 0] by [1, 1, 1] : tensor<2x4x24xf32> -> tensor<2x4x8xf32>
    %k = tx.slice %0 [0, 0, 8] by [1, 1, 1] : tensor<2x4x24xf32> -> tensor<2x4x8xf32>
    %v = tx.slice %0 [0, 0, 16] by [1, 1, 1] : tensor<2x4x24xf32> -> tensor<2x4x8xf32>
    %qh = tx.reshape %q : tensor<2x4x8xf32> -> tensor<2x4x2x4xf32>
    %kh = tx.reshape %k : tensor<2x4x8xf32> -> tensor<2x4x2x4xf32>
    %vh = tx.reshape %v : tensor<2x4x8xf32> -> tensor<2x4x2x4xf32>
    %a, %lse = tx.attention %qh, %kh, %vh scale 5.0e-1 causal : (tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>) -> (tensor<2x4x2x4xf32>, tensor<2x2x4xf32>)
    %m = tx.reshape %a : tensor<2x4x2x4xf32> -> tensor<2x4x8xf32>
    %y = tx.matmul %m, %out : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %z = tx.softmax %y : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    return %z : tensor<2x4x8xf32>
  }
}

// -----

// A table that data look up is split by rows; one that positions look up, which every rank knows, stays.
// CHECK: train.parameter @tokens : tensor<16x8xf32> {{{.*}}par.split = #par.place<[16 @tp, 8]>}
// CHECK: train.parameter @positions : tensor<4x8xf32>
// CHECK-NOT: par.split
// CHECK: func.func
module attributes {par.mesh = #par.mesh<tp = 2>} {
  train.parameter @tokens : tensor<16x8xf32>
  train.parameter @positions : tensor<4x8xf32>
  func.func @forward(%ids: tensor<2x4xi64>) -> tensor<2x4x8xf32> attributes {train.entry_point = #train.entry_point<forward>} {
    %tokens = train.read @tokens : tensor<16x8xf32>
    %positions = train.read @positions : tensor<4x8xf32>
    %at = tx.iota 0.0, 1.0 : tensor<4xi64>
    %0 = tx.embedding %tokens, %ids : (tensor<16x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
    %1 = tx.embedding %positions, %at : (tensor<4x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
    %2 = tx.broadcast %1 : tensor<4x8xf32> -> tensor<2x4x8xf32>
    %3 = tx.add %0, %2 : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %4 = tx.softmax %3 : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    return %4 : tensor<2x4x8xf32>
  }
}

// -----

// A vocabulary that does not divide: what uses the table keeps the padding of the last rank's shard zero.
// CHECK: train.parameter @odd : tensor<15x8xf32> {{{.*}}par.split = #par.place<[15 @tp, 8]>}
module attributes {par.mesh = #par.mesh<tp = 2>} {
  train.parameter @odd : tensor<15x8xf32>
  func.func @forward(%ids: tensor<2x4xi64>) -> tensor<2x4x8xf32> attributes {train.entry_point = #train.entry_point<forward>} {
    %odd = train.read @odd : tensor<15x8xf32>
    %0 = tx.embedding %odd, %ids : (tensor<15x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
    %1 = tx.softmax %0 : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    return %1 : tensor<2x4x8xf32>
  }
}

// -----

// Two key heads for four ranks: as many as the ranks, each of them twice, and four query heads are split.
// CHECK: train.parameter @q : tensor<8x8xf32> {{{.*}}par.split = #par.place<[8, 8 @tp]>}
// CHECK: train.parameter @kv : tensor<8x4xf32>{{$}}
// CHECK: train.parameter @out : tensor<8x8xf32> {{{.*}}par.split = #par.place<[8 @tp, 8]>}
// CHECK: %[[K:.*]] = tx.repeat %{{.*}} times 2 along 2 : (tensor<2x4x2x2xf32>) -> tensor<2x4x4x2xf32>
// CHECK: %[[V:.*]] = tx.repeat %{{.*}} times 2 along 2
// CHECK: tx.attention %{{.*}}, %[[K]], %[[V]] from %{{.*}} scale
module attributes {par.mesh = #par.mesh<tp = 4>} {
  train.parameter @q : tensor<8x8xf32>
  train.parameter @kv : tensor<8x4xf32>
  train.parameter @out : tensor<8x8xf32>
  func.func @forward(%x: tensor<2x4x8xf32>, %first: tensor<2x4xi32>) -> tensor<2x4x8xf32> attributes {train.entry_point = #train.entry_point<forward>} {
    %q = train.read @q : tensor<8x8xf32>
    %kv = train.read @kv : tensor<8x4xf32>
    %out = train.read @out : tensor<8x8xf32>
    %in = tx.softmax %x : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %0 = tx.matmul %in, %q : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %1 = tx.matmul %in, %kv : (tensor<2x4x8xf32>, tensor<8x4xf32>) -> tensor<2x4x4xf32>
    %qh = tx.reshape %0 : tensor<2x4x8xf32> -> tensor<2x4x4x2xf32>
    %kh = tx.reshape %1 : tensor<2x4x4xf32> -> tensor<2x4x2x2xf32>
    %a, %lse = tx.attention %qh, %kh, %kh from %first scale 5.0e-1 causal : (tensor<2x4x4x2xf32>, tensor<2x4x2x2xf32>, tensor<2x4x2x2xf32>, tensor<2x4xi32>) -> (tensor<2x4x4x2xf32>, tensor<2x4x4xf32>)
    %m = tx.reshape %a : tensor<2x4x4x2xf32> -> tensor<2x4x8xf32>
    %y = tx.matmul %m, %out : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %z = tx.softmax %y : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    return %z : tensor<2x4x8xf32>
  }
}

// -----

// Four query heads and one key head for all of them in one weight, which stays full: the queries' rows and bias are shards,
// the key's are not. A row that is looked up by a number is a slice too.
// CHECK: train.parameter @qkv : tensor<12x8xf32>{{$}}
// CHECK: train.parameter @bias : tensor<12xf32>{{$}}
// CHECK: train.parameter @out : tensor<8x8xf32> {{{.*}}par.split = #par.place<[8 @tp, 8]>}
// CHECK: %[[W:.*]] = train.read @qkv
// CHECK-DAG: %[[KEY:.*]] = tx.slice %[[W]] [8, 0] by [1, 1] : tensor<12x8xf32> -> tensor<2x8xf32>
// CHECK-DAG: %[[VALUE:.*]] = tx.slice %[[W]] [10, 0] by [1, 1] : tensor<12x8xf32> -> tensor<2x8xf32>
// CHECK-DAG: %[[QUERIES:.*]] = tx.slice %[[W]] [0, 0] by [1, 1] : tensor<12x8xf32> -> tensor<8x8xf32>
// CHECK-DAG: %[[SHARD:.*]] = par.narrow %[[QUERIES]] over "tp" along 0 : tensor<8x8xf32> -> tensor<8x8xf32>
// CHECK-NOT: par.undecided
// CHECK-DAG: tx.matmul_nt %{{.*}}, %[[SHARD]]
// CHECK-DAG: tx.matmul_nt %{{.*}}, %[[KEY]]
// CHECK-DAG: tx.matmul_nt %{{.*}}, %[[VALUE]]
// CHECK-NOT: tx.embedding
module attributes {par.mesh = #par.mesh<tp = 2>} {
  train.parameter @qkv : tensor<12x8xf32>
  train.parameter @bias : tensor<12xf32>
  train.parameter @out : tensor<8x8xf32>
  func.func @forward(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> attributes {train.entry_point = #train.entry_point<forward>} {
    %qkv = train.read @qkv : tensor<12x8xf32>
    %bias = train.read @bias : tensor<12xf32>
    %out = train.read @out : tensor<8x8xf32>
    %five = tx.constant dense<5> : tensor<1xi64> : tensor<1xi64>
    %in = tx.softmax %x : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %0 = tx.matmul_nt %in, %qkv : (tensor<2x4x8xf32>, tensor<12x8xf32>) -> tensor<2x4x12xf32>
    %b = tx.broadcast %bias : tensor<12xf32> -> tensor<2x4x12xf32>
    %1 = tx.add %0, %b : (tensor<2x4x12xf32>, tensor<2x4x12xf32>) -> tensor<2x4x12xf32>
    %heads = tx.reshape %1 : tensor<2x4x12xf32> -> tensor<2x4x6x2xf32>
    %q = tx.slice %heads [0, 0, 0, 0] by [1, 1, 1, 1] : tensor<2x4x6x2xf32> -> tensor<2x4x4x2xf32>
    %k = tx.slice %heads [0, 0, 4, 0] by [1, 1, 1, 1] : tensor<2x4x6x2xf32> -> tensor<2x4x1x2xf32>
    %first = tx.transpose %heads [2, 0, 1, 3] : tensor<2x4x6x2xf32> -> tensor<6x2x4x2xf32>
    %rows = tx.reshape %first : tensor<6x2x4x2xf32> -> tensor<6x16xf32>
    %row = tx.embedding %rows, %five : (tensor<6x16xf32>, tensor<1xi64>) -> tensor<1x16xf32>
    %v = tx.reshape %row : tensor<1x16xf32> -> tensor<2x4x1x2xf32>
    %a, %lse = tx.attention %q, %k, %v scale 5.0e-1 causal : (tensor<2x4x4x2xf32>, tensor<2x4x1x2xf32>, tensor<2x4x1x2xf32>) -> (tensor<2x4x4x2xf32>, tensor<2x4x4xf32>)
    %m = tx.reshape %a : tensor<2x4x4x2xf32> -> tensor<2x4x8xf32>
    %y = tx.matmul %m, %out : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %z = tx.softmax %y : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    return %z : tensor<2x4x8xf32>
  }
}

// -----

// A norm of all that one matmul makes and the next one sums away is split with them, as nothing else is in the way; the
// one in front of both runs along rows that both have in full.
// CHECK: train.parameter @first : tensor<4xf32>
// CHECK-NOT: par.split
// CHECK: train.parameter @up : tensor<4x16xf32> {{{.*}}par.split = #par.place<[4, 16 @tp]>}
// CHECK: train.parameter @inner : tensor<16xf32> {{{.*}}par.split = #par.place<[16 @tp]>}
// CHECK: train.parameter @down : tensor<16x4xf32> {{{.*}}par.split = #par.place<[16 @tp, 4]>}
module attributes {par.mesh = #par.mesh<tp = 2>} {
  train.parameter @first : tensor<4xf32>
  train.parameter @table : tensor<5x4xf32>
  train.parameter @up : tensor<4x16xf32>
  train.parameter @inner : tensor<16xf32>
  train.parameter @down : tensor<16x4xf32>
  func.func @forward(%x: tensor<8x5xf32>) -> tensor<8x4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
    %first = train.read @first : tensor<4xf32>
    %table = train.read @table : tensor<5x4xf32>
    %up = train.read @up : tensor<4x16xf32>
    %inner = train.read @inner : tensor<16xf32>
    %down = train.read @down : tensor<16x4xf32>
    %in = tx.matmul %x, %table : (tensor<8x5xf32>, tensor<5x4xf32>) -> tensor<8x4xf32>
    %n, %r = tx.rms_norm %in, %first eps 1.0e-6 : (tensor<8x4xf32>, tensor<4xf32>) -> (tensor<8x4xf32>, tensor<8xf32>)
    %0 = tx.matmul %n, %up : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
    %1, %s = tx.rms_norm %0, %inner eps 1.0e-6 : (tensor<8x16xf32>, tensor<16xf32>) -> (tensor<8x16xf32>, tensor<8xf32>)
    %2 = tx.matmul %1, %down : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
    %3 = tx.add %in, %2 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    return %3 : tensor<8x4xf32>
  }
}
