// RUN: partita-opt %s --split-input-file --partition-seed-sequence | FileCheck %s
// RUN: partita-opt %s --split-input-file --partition-seed-sequence=on=false | FileCheck %s --check-prefix=OFF
// OFF-NOT: par.narrow
// OFF-NOT: par.all_gather

// From the matmul whose sum is left open, through the residual sum and the norm, to the matmul whose
// columns are split: rows are the second dimension, after the batch.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<2x8x4xf32>
// CHECK: %[[U:.*]] = tx.matmul %[[X]]
// CHECK: %[[D:.*]] = tx.matmul %[[U]]
// CHECK-NEXT: %[[N:.*]] = par.narrow %[[D]] over "tp" along 1 : tensor<2x8x4xf32> -> tensor<2x8x4xf32>
// CHECK-NEXT: %[[XN:.*]] = par.narrow %[[X]] over "tp" along 1
// CHECK-NEXT: %[[R:.*]] = tx.add %[[XN]], %[[N]]
// CHECK-NEXT: %[[Y:.*]], %{{.*}} = tx.rms_norm %[[R]]
// CHECK-NEXT: %[[G:.*]] = par.all_gather %[[Y]] over "tp" along 1
// CHECK-NEXT: tx.matmul %[[G]]
// CHECK-NEXT: tx.matmul %[[G]]
// CHECK-NEXT: return
module attributes {par.mesh = #par.mesh<tp = 2>} {
  train.parameter @w : tensor<4xf32>
  train.parameter @up : tensor<4x16xf32> {par.split = #par.place<[4, 16 @tp]>}
  train.parameter @down : tensor<16x4xf32> {par.split = #par.place<[16 @tp, 4]>}
  func.func @forward(%x: tensor<2x8x4xf32> {train.batch = 0}) -> (tensor<2x8x16xf32>, tensor<2x8x16xf32>) attributes {train.entry_point = #train.entry_point<forward>} {
    %w = train.read @w : tensor<4xf32>
    %up = train.read @up : tensor<4x16xf32>
    %down = train.read @down : tensor<16x4xf32>
    %a = tx.matmul %x, %up : (tensor<2x8x4xf32>, tensor<4x16xf32>) -> tensor<2x8x16xf32>
    %h = tx.matmul %a, %down : (tensor<2x8x16xf32>, tensor<16x4xf32>) -> tensor<2x8x4xf32>
    %r = tx.add %x, %h : (tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
    %y, %rstd = tx.rms_norm %r, %w eps 1.0e-6 : (tensor<2x8x4xf32>, tensor<4xf32>) -> (tensor<2x8x4xf32>, tensor<2x8xf32>)
    %u = tx.matmul %y, %up : (tensor<2x8x4xf32>, tensor<4x16xf32>) -> tensor<2x8x16xf32>
    %v = tx.matmul %y, %up : (tensor<2x8x4xf32>, tensor<4x16xf32>) -> tensor<2x8x16xf32>
    return %u, %v : tensor<2x8x16xf32>, tensor<2x8x16xf32>
  }
}

// -----

// Rows and batch in one dimension: the sequence is what each sample has of it. A bias and positions are
// split where they are made; a value that an op needs in full is gathered there.
// CHECK-LABEL: func.func @merged
// CHECK: %[[H:.*]] = tx.matmul {{.*}} tensor<16x4xf32>
// CHECK-NEXT: %[[N:.*]] = par.narrow %[[H]] over "tp" along 0 in 2 blocks
// CHECK: %[[I:.*]] = tx.iota
// CHECK: %[[IN:.*]] = par.narrow %[[I]] over "tp" along 0 :
// CHECK-NEXT: %[[E:.*]] = tx.embedding %{{.*}}, %[[IN]]
// CHECK: tx.add %[[N]]
// CHECK: %[[S:.*]] = tx.add
// CHECK-NEXT: %[[W:.*]] = par.all_gather %[[S]] over "tp" along 1
// CHECK-NEXT: tx.slice %[[W]]
module attributes {par.mesh = #par.mesh<dp = 2, tp = 2>} {
  train.parameter @b : tensor<4xf32>
  train.parameter @positions : tensor<9x4xf32>
  train.parameter @down : tensor<16x4xf32> {par.split = #par.place<[16 @tp, 4]>}
  func.func @merged(%x: tensor<2x8x16xf32> {train.batch = 0, par.split = #par.place<[2 @dp, 8, 16]>}) -> tensor<2x4xf32> {
    %b = train.read @b : tensor<4xf32>
    %down = train.read @down : tensor<16x4xf32>
    %positions = train.read @positions : tensor<9x4xf32>
    %m = tx.reshape %x : tensor<2x8x16xf32> -> tensor<16x16xf32>
    %h = tx.matmul %m, %down : (tensor<16x16xf32>, tensor<16x4xf32>) -> tensor<16x4xf32>
    %wide = tx.broadcast %b : tensor<4xf32> -> tensor<16x4xf32>
    %i = tx.iota 0.0, 1.0 : tensor<8xi64>
    %e = tx.embedding %positions, %i : (tensor<9x4xf32>, tensor<8xi64>) -> tensor<8x4xf32>
    %ew = tx.broadcast %e : tensor<8x4xf32> -> tensor<2x8x4xf32>
    %hb = tx.add %h, %wide : (tensor<16x4xf32>, tensor<16x4xf32>) -> tensor<16x4xf32>
    %r = tx.reshape %hb : tensor<16x4xf32> -> tensor<2x8x4xf32>
    %s = tx.add %r, %ew : (tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
    %f = tx.slice %s [0, 0, 0] by [1, 1, 1] : tensor<2x8x4xf32> -> tensor<2x1x4xf32>
    %o = tx.reshape %f : tensor<2x1x4xf32> -> tensor<2x4xf32>
    return %o : tensor<2x4xf32>
  }
}

// -----

// Elements of a dropped value are numbered from the shard's first one on: shards of several samples in one
// dimension have no such number, so the value is full there.
// CHECK-LABEL: func.func @dropped
// CHECK: %[[N:.*]] = par.narrow %{{.*}} over "tp" along 0 in 2 blocks
// CHECK-NEXT: %[[E:.*]] = tx.exp %[[N]]
// CHECK-NEXT: %[[G:.*]] = par.all_gather %[[E]]
// CHECK-NEXT: tx.dropout %[[G]]
module attributes {par.mesh = #par.mesh<tp = 2>} {
  train.parameter @down : tensor<16x4xf32> {par.split = #par.place<[16 @tp, 4]>}
  func.func @dropped(%x: tensor<2x8x16xf32> {train.batch = 0}, %key: tensor<i64>, %sample: tensor<i64>) -> tensor<16x4xf32> {
    %down = train.read @down : tensor<16x4xf32>
    %m = tx.reshape %x : tensor<2x8x16xf32> -> tensor<16x16xf32>
    %h = tx.matmul %m, %down : (tensor<16x16xf32>, tensor<16x4xf32>) -> tensor<16x4xf32>
    %e = tx.exp %h : (tensor<16x4xf32>) -> tensor<16x4xf32>
    %d = tx.dropout %e ratio 0.5 id 0 key %key micro %sample : (tensor<16x4xf32>, tensor<i64>, tensor<i64>) -> tensor<16x4xf32>
    return %d : tensor<16x4xf32>
  }
}
