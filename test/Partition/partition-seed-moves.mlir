// RUN: partita-opt %s --partition-seed-moves --split-input-file | FileCheck %s
// RUN: partita-opt %s --partition-seed-moves --partition-propagate --partition-materialize --simplify-collectives --split-input-file | FileCheck %s --check-prefix=PLACED

// The sum over ranks is completed after the move; what adds to it follows, on shards.
// CHECK-LABEL: func.func @forward
// CHECK: %[[A:.*]] = tx.matmul %arg0
// CHECK: %[[H:.*]] = tx.matmul %[[A]]
// CHECK: %[[XN:.*]] = par.narrow %arg0 over "tp" along 1 {par.moved}
// CHECK: %[[N:.*]] = par.narrow %[[H]] over "tp" along 1 {par.moved}
// CHECK: %[[R:.*]] = tx.add %[[XN]], %[[N]]
// CHECK: %[[S:.*]] = pipe.move %[[R]] over <0 to 1>
// CHECK: %[[M:.*]] = par.all_gather %[[S]] over "tp" along 1 {par.moved}
// CHECK: tx.exp %[[M]]
// PLACED: %[[A:.*]] = tx.matmul %arg0
// PLACED: %[[PART:.*]] = tx.matmul %[[A]]
// PLACED: %[[XN:.*]] = par.narrow %arg0 over "tp" along 1 {{.*}}#par.cause<moved
// PLACED: %[[N:.*]] = par.reduce_scatter %[[PART]] over "tp" along 1 {{.*}}#par.cause<sent "k" in
// PLACED: %[[R:.*]] = tx.add %[[XN]], %[[N]]
// PLACED: %[[S:.*]] = pipe.move %[[R]] over <0 to 1> : tensor<2x4x4xf32, #par.place<[2, 8 @tp, 4]>>
// PLACED: par.all_gather %[[S]] over "tp" along 1 {{.*}}#par.cause<moved "" in "" of "" "" layer -1 of 0 seed <"stages"
module attributes {par.mesh = #par.mesh<tp = 2>, pipe.stages = 2} {
  train.parameter @down : tensor<16x4xf32> {par.split = #par.place<[16 @tp, 4]>, pipe.on = array<i64: 0>}
  train.parameter @up : tensor<4x16xf32> {par.split = #par.place<[4, 16 @tp]>, pipe.on = array<i64: 0, 1>}
  func.func @forward(%x: tensor<2x8x4xf32> {train.batch = 0}) -> tensor<2x8x16xf32> attributes {train.entry_point = #train.entry_point<forward>} {
    %down = train.read @down : tensor<16x4xf32>
    %up = train.read @up : tensor<4x16xf32>
    %a = tx.matmul %x, %up : (tensor<2x8x4xf32>, tensor<4x16xf32>) -> tensor<2x8x16xf32>
    %h = tx.matmul %a, %down : (tensor<2x8x16xf32>, tensor<16x4xf32>) -> tensor<2x8x4xf32>
    %r = tx.add %x, %h : (tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
    %m = pipe.move %r over <0 to 1> : tensor<2x8x4xf32>
    %e = tx.exp %m : (tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
    %u = tx.matmul %e, %up : (tensor<2x8x4xf32>, tensor<4x16xf32>) -> tensor<2x8x16xf32>
    return %u : tensor<2x8x16xf32>
  }
}

// -----

// What is handed on to a third stage stays a shard; stage 1 gathers it for itself.
// CHECK-LABEL: func.func @handed_on
// CHECK: %[[N:.*]] = par.narrow %arg0 over "tp" along 1
// CHECK: %[[S:.*]] = pipe.move %[[N]] over <0 to 1>
// CHECK: %[[T:.*]] = pipe.move %[[S]] over <1 to 2>
// CHECK-DAG: par.all_gather %[[S]] over "tp"
// CHECK-DAG: par.all_gather %[[T]] over "tp"
module attributes {par.mesh = #par.mesh<tp = 2>, pipe.stages = 3} {
  func.func @handed_on(%x: tensor<2x8x4xf32> {train.batch = 0}) -> (tensor<2x8x4xf32>, tensor<2x8x4xf32>) {
    %a = pipe.move %x over <0 to 1> : tensor<2x8x4xf32>
    %b = pipe.move %a over <1 to 2> : tensor<2x8x4xf32>
    %c = tx.exp %a : (tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
    %d = tx.exp %b : (tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
    return %c, %d : tensor<2x8x4xf32>, tensor<2x8x4xf32>
  }
}

// -----

// Two ranks do not divide a sequence of 7, chunks of one stage send nothing.
// CHECK-LABEL: func.func @stays
// CHECK-NOT: par.narrow
module attributes {par.mesh = #par.mesh<tp = 2>, pipe.chunks = 2, pipe.stages = 2, pipe.wave} {
  func.func @stays(%x: tensor<2x7x4xf32> {train.batch = 0}, %z: tensor<2x8x4xf32> {train.batch = 0}) -> (tensor<2x7x4xf32>, tensor<2x8x4xf32>) {
    %a = pipe.move %x over <0 to 1> : tensor<2x7x4xf32>
    %b = pipe.move %z over <1 to 2> : tensor<2x8x4xf32>
    return %a, %b : tensor<2x7x4xf32>, tensor<2x8x4xf32>
  }
}
