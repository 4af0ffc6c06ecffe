// RUN: partita-opt %s --start-collectives | FileCheck %s
// RUN: sed 's/scatter %a over "dp" :/scatter %a over "dp" in int4 blocks of 8 :/' %s | not partita-opt --start-collectives 2>&1 | FileCheck %s --check-prefix=INT4
// INT4: error: is marked to send int4 blocks, which starts as an exchange of its own; run zero-quantize-scatters before start-collectives

!p = tensor<4xf32, #par.place<[4], partial [dp]>>

// CHECK-LABEL: func.func @overlapped
// CHECK: %[[T:.*]] = par.all_reduce_start %arg0 over "dp" because "gradient"
// CHECK-NEXT: %[[E:.*]] = tx.exp %arg1
// CHECK-NEXT: %[[R:.*]] = par.wait %[[T]], %arg0
// CHECK-NEXT: tx.add %[[R]], %[[E]]
func.func @overlapped(%x: !p, %y: tensor<4xf32>) -> tensor<4xf32> attributes {par.no_cotangents} {
  %r = par.all_reduce %x over "dp" because "gradient" : !p -> tensor<4xf32>
  %e = tx.exp %y : (tensor<4xf32>) -> tensor<4xf32>
  %s = tx.add %r, %e : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %s : tensor<4xf32>
}

// Nothing to do meanwhile: one call is as good as two.
// CHECK-LABEL: func.func @at_once
// CHECK: par.all_reduce %arg0
// CHECK-NOT: par.wait
func.func @at_once(%x: !p) -> tensor<4xf32> attributes {par.no_cotangents} {
  %r = par.all_reduce %x over "dp" because "gradient" : !p -> tensor<4xf32>
  %s = tx.neg %r : (tensor<4xf32>) -> tensor<4xf32>
  return %s : tensor<4xf32>
}

// What a gather or a reduce-scatter fills is its start's result. A flat one that is pending is no reason to wait for one along a dimension.
// CHECK-LABEL: func.func @along
// CHECK: %[[U:.*]], %[[C:.*]] = zero.reduce_scatter_start %arg2 over "dp"
// CHECK-NEXT: %[[T:.*]], %[[B:.*]] = par.all_gather_start %arg0 over "tp" along 0
// CHECK-NEXT: tx.exp
// CHECK-NEXT: %[[W:.*]] = par.wait %[[T]], %[[B]]
// CHECK-NEXT: tx.neg %[[W]]
// CHECK-NEXT: %[[S:.*]], %[[D:.*]] = par.reduce_scatter_start %arg3 over "tp" along 0 because "gradient"
// CHECK-NEXT: tx.add
// CHECK-NEXT: %[[P:.*]] = par.wait %[[U]], %[[C]]
// CHECK-NEXT: %[[Q:.*]] = par.wait %[[S]], %[[D]]
// CHECK-NEXT: return %{{.*}}, %[[P]], %[[Q]]
!rows = tensor<2xf32, #par.place<[4 @tp]>>
module attributes {par.mesh = #par.mesh<dp = 2, tp = 2>} {
  func.func @along(%x: !rows, %y: tensor<4xf32>, %z: !p, %u: tensor<4xf32, #par.place<[4], partial [tp]>>) -> (tensor<4xf32>, tensor<2xf32, #par.place<[4], flat [dp]>>, !rows) attributes {par.no_cotangents} {
    %g = zero.reduce_scatter %z over "dp" because "gradient" : !p -> tensor<2xf32, #par.place<[4], flat [dp]>>
    %w = par.all_gather %x over "tp" along 0 : !rows -> tensor<4xf32>
    %e = tx.exp %y : (tensor<4xf32>) -> tensor<4xf32>
    %a = tx.neg %w : (tensor<4xf32>) -> tensor<4xf32>
    %s = par.reduce_scatter %u over "tp" along 0 because "gradient" : tensor<4xf32, #par.place<[4], partial [tp]>> -> !rows
    %b = tx.add %a, %e : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %b, %g, %s : tensor<4xf32>, tensor<2xf32, #par.place<[4], flat [dp]>>, !rows
  }
}

// CHECK-LABEL: func.func @shards
// CHECK: %[[T:.*]], %[[B:.*]] = zero.gather_start %arg0 over "dp" because "parameter"
// CHECK-NEXT: tx.exp
// CHECK-NEXT: %[[W:.*]] = par.wait %[[T]], %[[B]]
// CHECK-NEXT: tx.add %[[W]]
// CHECK-NEXT: %[[U:.*]], %[[C:.*]] = zero.reduce_scatter_start %arg2 over "dp" because "gradient"
// CHECK-NEXT: tx.exp
// CHECK-NEXT: %[[P:.*]] = par.wait %[[U]], %[[C]]
// CHECK-NEXT: return %{{.*}}, %[[P]]
!shard = tensor<2xf32, #par.place<[4], flat [dp]>>
module attributes {par.mesh = #par.mesh<dp = 2>} {
  func.func @shards(%x: !shard, %y: tensor<4xf32>, %z: !p) -> (tensor<4xf32>, !shard) attributes {par.no_cotangents} {
    %w = zero.gather %x over "dp" because "parameter" : !shard -> tensor<4xf32>
    %e = tx.exp %y : (tensor<4xf32>) -> tensor<4xf32>
    %s = tx.add %w, %e : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %g = zero.reduce_scatter %z over "dp" because "gradient" : !p -> !shard
    %f = tx.exp %s : (tensor<4xf32>) -> tensor<4xf32>
    return %f, %g : tensor<4xf32>, !shard
  }

  // One after the other: the first one's full tensors are free when the second begins.
  // CHECK-LABEL: func.func @in_turn
  // CHECK: %[[T:.*]], %[[B:.*]] = zero.reduce_scatter_start %arg0
  // CHECK-NEXT: tx.exp
  // CHECK-NEXT: %[[P:.*]] = par.wait %[[T]], %[[B]]
  // CHECK-NEXT: %[[U:.*]], %[[C:.*]] = zero.reduce_scatter_start %arg1
  // CHECK-NEXT: tx.exp
  // CHECK-NEXT: %[[Q:.*]] = par.wait %[[U]], %[[C]]
  // CHECK-NEXT: return
  func.func @in_turn(%a: !p, %b: !p, %y: tensor<4xf32>) -> (!shard, !shard, tensor<4xf32>) attributes {par.no_cotangents} {
    %g = zero.reduce_scatter %a over "dp" : !p -> !shard
    %e = tx.exp %y : (tensor<4xf32>) -> tensor<4xf32>
    %h = zero.reduce_scatter %b over "dp" : !p -> !shard
    %f = tx.exp %e : (tensor<4xf32>) -> tensor<4xf32>
    return %g, %h, %f : !shard, !shard, tensor<4xf32>
  }
}

// What begins in a pass's last slot is waited for after the loop: that of a sum in its memory, that of shards in what it fills.
!shard1 = tensor<2xf32, #par.place<[4], flat [dp]>>
!ps = tensor<2x4xf32, #par.place<[2, 4], partial [dp]>>
module attributes {par.mesh = #par.mesh<dp = 2>} {
  // CHECK-LABEL: func.func @behind_the_loop
  // CHECK: %{{.*}}:2, %[[L:.*]]:4 = train.accumulate
  // CHECK: %[[T:.*]] = par.all_reduce_start %[[A:.*]] over "dp" {train.last}
  // CHECK: %[[U:.*]], %[[C:.*]] = zero.reduce_scatter_start %[[B:.*]] over "dp" {train.last}
  // CHECK-NEXT: train.yield %[[A]], %[[B]] : {{.*}} last %[[T]], %[[A]], %[[U]], %[[C]]
  // CHECK: tx.exp %arg1
  // CHECK-NEXT: %[[R:.*]] = par.wait %[[L]]#0, %[[L]]#1
  // CHECK-NEXT: %[[E:.*]] = tx.add %[[R]], %{{.*}}
  // CHECK-NEXT: %[[P:.*]] = par.wait %[[L]]#2, %[[L]]#3
  // CHECK-NEXT: return %[[E]], %[[P]]
  func.func @behind_the_loop(%xs: !ps, %y: tensor<4xf32>) -> (tensor<4xf32>, !shard1) attributes {par.no_cotangents} {
    %da, %db, %ra, %rb = train.accumulate (%x = %xs) : (!ps) -> (!p, !p, tensor<4xf32>, !shard1) {
      train.yield
    } backward (%d) onto (%sa = 0, %sb = 1) {
      %a = tx.add %sa, %d : (!p, !p) -> !p
      %r = par.all_reduce %a over "dp" {train.last} : !p -> tensor<4xf32>
      %b = tx.add %sb, %d : (!p, !p) -> !p
      %q = zero.reduce_scatter %b over "dp" {train.last} : !p -> !shard1
      train.yield %a, %b : !p, !p last %r, %q : tensor<4xf32>, !shard1
    } {order = #train.order<2 x (forward 0, backward 0)>}
    %e = tx.exp %y : (tensor<4xf32>) -> tensor<4xf32>
    %s = tx.add %ra, %e : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %s, %rb : tensor<4xf32>, !shard1
  }
}

// A start has all attributes of the op, also a plugin's; the wait has none.
// CHECK-LABEL: func.func @foreign
// CHECK: %[[T:.*]] = par.all_reduce_start %arg0 over "dp" {experiment.bits = 4 : i64}
// CHECK: %[[U:.*]], %[[B:.*]] = zero.gather_start %arg1 over "dp" {experiment.bits = 8 : i64}
// CHECK: par.wait %[[T]], %arg0 : i64
// CHECK: par.wait %[[U]], %[[B]] : i64
module attributes {par.mesh = #par.mesh<dp = 2>} {
  func.func @foreign(%x: !p, %s: !shard, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) attributes {par.no_cotangents} {
    %r = par.all_reduce %x over "dp" {experiment.bits = 4 : i64} : !p -> tensor<4xf32>
    %w = zero.gather %s over "dp" {experiment.bits = 8 : i64} : !shard -> tensor<4xf32>
    %e = tx.exp %y : (tensor<4xf32>) -> tensor<4xf32>
    return %r, %w, %e : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
}
