// RUN: partita-opt %s --split-input-file --zero-quantize-scatters | FileCheck %s --implicit-check-not="int4 blocks"
// RUN: partita-opt %s --split-input-file --zero-quantize-scatters --start-collectives | FileCheck %s --check-prefix=START

// A bucket is one tensor of bytes: of each value a scale and the words of its chunk. What is received is summed before the next exchange over
// the axis, or where a shard is used. A reduce-scatter that is not marked stays.
module attributes {par.mesh = #par.mesh<dp = 2, tp = 2>} {
  // CHECK-LABEL: func.func @bucket
  // CHECK: %[[C:.*]] = zero.quantize_chunks %arg0, %arg1 over "dp" by 8 : tensor<4x8xf32, #par.place<[4, 8], partial [dp]>>, tensor<3x5xbf16, #par.place<[3, 5], partial [dp]>> -> tensor<2x1x24xi8, #par.place<[2, 2 @dp, 24]>>
  // CHECK-NEXT: %[[R:.*]] = zero.exchange_chunks %[[C]] over "dp" because "gradient" : tensor<2x1x24xi8, #par.place<[2, 2 @dp, 24]>> -> tensor<1x2x24xi8, #par.place<[2 @dp, 2, 24]>>
  // CHECK-NEXT: tx.neg
  // CHECK-NEXT: %[[D:.*]] = zero.quantize_chunks %arg0 over "dp" by 8
  // CHECK-NEXT: %[[S:.*]]:2 = zero.sum_chunks %[[R]] over "dp" by 8 : tensor<1x2x24xi8, #par.place<[2 @dp, 2, 24]>> -> tensor<16xf32, #par.place<[4, 8], flat [dp]>>, tensor<8xbf16, #par.place<[3, 5], flat [dp]>>
  // CHECK-NEXT: %[[Q:.*]] = zero.exchange_chunks %[[D]] over "dp"
  // CHECK-NEXT: tx.neg
  // CHECK-NEXT: %[[T:.*]] = zero.sum_chunks %[[Q]] over "dp" by 8
  // CHECK-NEXT: return %[[S]]#0, %[[S]]#1, %[[T]]
  // START-LABEL: func.func @bucket
  // START: %[[C:.*]] = zero.quantize_chunks
  // START-NEXT: %[[TOKEN:.*]], %[[R:.*]] = zero.exchange_chunks_start %[[C]] over "dp" because "gradient" : tensor<2x1x24xi8, #par.place<[2, 2 @dp, 24]>> -> i64, tensor<1x2x24xi8, #par.place<[2 @dp, 2, 24]>>
  // START-NEXT: tx.neg
  // START-NEXT: zero.quantize_chunks
  // START-NEXT: %[[DONE:.*]] = par.wait %[[TOKEN]], %[[R]]
  // START-NEXT: zero.sum_chunks %[[DONE]]
  // START-NEXT: zero.exchange_chunks_start
  func.func @bucket(%a: tensor<4x8xf32, #par.place<[4, 8], partial [dp]>>, %b: tensor<3x5xbf16, #par.place<[3, 5], partial [dp]>>, %x: tensor<2xf32>) -> (tensor<16xf32, #par.place<[4, 8], flat [dp]>>, tensor<8xbf16, #par.place<[3, 5], flat [dp]>>, tensor<16xf32, #par.place<[4, 8], flat [dp]>>, tensor<2xf32>) attributes {par.no_cotangents} {
    %s:2 = zero.reduce_scatter %a, %b over "dp" in int4 blocks of 8 because "gradient" : tensor<4x8xf32, #par.place<[4, 8], partial [dp]>>, tensor<3x5xbf16, #par.place<[3, 5], partial [dp]>> -> tensor<16xf32, #par.place<[4, 8], flat [dp]>>, tensor<8xbf16, #par.place<[3, 5], flat [dp]>>
    %y = tx.neg %x : (tensor<2xf32>) -> tensor<2xf32>
    %t = zero.reduce_scatter %a over "dp" in int4 blocks of 8 because "gradient" : tensor<4x8xf32, #par.place<[4, 8], partial [dp]>> -> tensor<16xf32, #par.place<[4, 8], flat [dp]>>
    %z = tx.neg %y : (tensor<2xf32>) -> tensor<2xf32>
    return %s#0, %s#1, %t, %z : tensor<16xf32, #par.place<[4, 8], flat [dp]>>, tensor<8xbf16, #par.place<[3, 5], flat [dp]>>, tensor<16xf32, #par.place<[4, 8], flat [dp]>>, tensor<2xf32>
  }

  // Ranks of another axis, which have other values, have a dimension of their own.
  // CHECK-LABEL: func.func @beside
  // CHECK: zero.quantize_chunks %arg0 over "dp" by 8 : tensor<4x8xf32, #par.place<[4, 16 @tp], partial [dp]>> -> tensor<1x2x1x16xi8, #par.place<[2 @tp, 2, 2 @dp, 16]>>
  // CHECK-NEXT: zero.exchange_chunks {{.*}} -> tensor<1x1x2x16xi8, #par.place<[2 @tp, 2 @dp, 2, 16]>>
  // CHECK: zero.reduce_scatter %arg0 over "dp" because "gradient"
  func.func @beside(%a: tensor<4x8xf32, #par.place<[4, 16 @tp], partial [dp]>>) -> (tensor<16xf32, #par.place<[4, 16 @tp], flat [dp]>>, tensor<16xf32, #par.place<[4, 16 @tp], flat [dp]>>) attributes {par.no_cotangents} {
    %s = zero.reduce_scatter %a over "dp" in int4 blocks of 8 because "gradient" : tensor<4x8xf32, #par.place<[4, 16 @tp], partial [dp]>> -> tensor<16xf32, #par.place<[4, 16 @tp], flat [dp]>>
    %e = zero.reduce_scatter %a over "dp" because "gradient" : tensor<4x8xf32, #par.place<[4, 16 @tp], partial [dp]>> -> tensor<16xf32, #par.place<[4, 16 @tp], flat [dp]>>
    return %s, %e : tensor<16xf32, #par.place<[4, 16 @tp], flat [dp]>>, tensor<16xf32, #par.place<[4, 16 @tp], flat [dp]>>
  }

  // A last slot's exchange goes on behind the loop, and what it brings is summed there.
  // CHECK-LABEL: func.func @last
  // CHECK: %{{.*}}, %[[L:.*]]:2 = train.accumulate
  // CHECK: %[[C:.*]] = zero.quantize_chunks %{{.*}} over "dp" by 8 {train.last}
  // CHECK-NEXT: %[[R:.*]] = zero.exchange_chunks %[[C]] over "dp" because "gradient" {train.last}
  // CHECK-NEXT: %[[A:.*]] = par.all_reduce
  // CHECK-NEXT: train.yield %{{.*}} last %[[A]], %[[R]]
  // CHECK: tx.neg
  // CHECK-NEXT: %[[S:.*]] = zero.sum_chunks %[[L]]#1 over "dp" by 8
  // CHECK-NEXT: return %[[S]], %[[L]]#0
  // START-LABEL: func.func @last
  // START: %{{.*}}, %[[L:.*]]:4 = train.accumulate
  // START: zero.exchange_chunks_start {{.*}} {train.last}
  // START: tx.neg
  // START-NEXT: %[[DONE:.*]] = par.wait %[[L]]#0, %[[L]]#1
  // START-NEXT: zero.sum_chunks %[[DONE]]
  func.func @last(%xs: tensor<2x4x8xf32, #par.place<[2, 4, 8], partial [dp]>>, %z: tensor<2xf32>) -> (tensor<16xf32, #par.place<[4, 8], flat [dp]>>, tensor<4x8xf32>, tensor<2xf32>) attributes {par.no_cotangents} {
    %sum, %r, %e = train.accumulate (%x = %xs) : (tensor<2x4x8xf32, #par.place<[2, 4, 8], partial [dp]>>) -> (tensor<4x8xf32, #par.place<[4, 8], partial [dp]>>, tensor<16xf32, #par.place<[4, 8], flat [dp]>>, tensor<4x8xf32>) {
      train.yield
    } backward (%d) onto (%so = 0) {
      %a = tx.add %so, %d : (tensor<4x8xf32, #par.place<[4, 8], partial [dp]>>, tensor<4x8xf32, #par.place<[4, 8], partial [dp]>>) -> tensor<4x8xf32, #par.place<[4, 8], partial [dp]>>
      %s = zero.reduce_scatter %a over "dp" in int4 blocks of 8 because "gradient" {train.last} : tensor<4x8xf32, #par.place<[4, 8], partial [dp]>> -> tensor<16xf32, #par.place<[4, 8], flat [dp]>>
      %full = par.all_reduce %a over "dp" {train.last} : tensor<4x8xf32, #par.place<[4, 8], partial [dp]>> -> tensor<4x8xf32>
      train.yield %a : tensor<4x8xf32, #par.place<[4, 8], partial [dp]>> last %s, %full : tensor<16xf32, #par.place<[4, 8], flat [dp]>>, tensor<4x8xf32>
    } {order = #train.order<2 x (forward 0, backward 0)>}
    %y = tx.neg %z : (tensor<2xf32>) -> tensor<2xf32>
    return %r, %e, %y : tensor<16xf32, #par.place<[4, 8], flat [dp]>>, tensor<4x8xf32>, tensor<2xf32>
  }
}
