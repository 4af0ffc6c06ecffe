// RUN: partita-opt %s --plan-memory --check-streams | FileCheck %s

// The shards that the backward pass's last slot begins to fill stand until their wait. Forward passes have all run by then, so their memory may be
// the same; the rest of the pass has other memory.
!p = tensor<64xf32, #par.place<[64], partial [dp]>>
!ps = tensor<2x64xf32, #par.place<[2, 64], partial [dp]>>
!shard = tensor<32xf32, #par.place<[64], flat [dp]>>
// CHECK: module attributes {{{.*}}rt.arena_bytes = [[ARENA:[0-9]+]]
module attributes {par.mesh = #par.mesh<dp = 2>} {
  // CHECK-LABEL: func.func @in_order
  // CHECK: tx.exp {{.*}}arena [[TEMPORARY:[0-9]+]]
  // CHECK: zero.reduce_scatter_start {{.*}}arena [[TEMPORARY]]
  func.func @in_order(%xs: !ps, %ys: tensor<2x64xf32>) -> (tensor<f32>, !shard) attributes {par.no_cotangents} {
    %f, %dw, %token, %shard = train.accumulate (%x = %xs, %y = %ys) : (!ps, tensor<2x64xf32>) -> (tensor<f32>, !p, i64, !shard) {
      %a = tx.exp %y : (tensor<64xf32>) -> tensor<64xf32>
      %b = tx.reduce_sum %a [0] : tensor<64xf32> -> tensor<f32>
      train.yield %b : tensor<f32>
    } backward (%d, %z) onto (%s = 1) {
      %w = tx.add %s, %d : (!p, !p) -> !p
      %t, %q = zero.reduce_scatter_start %w over "dp" {train.last} : !p -> i64, !shard
      train.yield %w : !p last %t, %q : i64, !shard
    } {order = #train.order<1 x (forward 0), 1 x (forward 1, backward 0), 1 x (backward 1)>}
    %r = par.wait %token, %shard : i64, !shard -> !shard
    return %f, %r : tensor<f32>, !shard
  }

  // Passes of chunk 0 run after those of chunk 1, though they stand in front of them in the text.
  // CHECK-LABEL: func.func @out_of_order
  // CHECK: tx.exp {{.*}}arena [[TEMPORARY:[0-9]+]]
  // CHECK-NOT: zero.reduce_scatter_start {{.*}}arena [[TEMPORARY]]>
  // CHECK: par.wait
  func.func @out_of_order(%xs: !ps, %ys: tensor<2x64xf32>) -> (tensor<f32>, !shard) attributes {par.no_cotangents} {
    %f, %dw, %token, %shard = train.accumulate (%x = %xs, %y = %ys) : (!ps, tensor<2x64xf32>) -> (tensor<f32>, !p, i64, !shard) {
      %a = tx.exp %y : (tensor<64xf32>) -> tensor<64xf32>
      %b = tx.reduce_sum %a [0] : tensor<64xf32> -> tensor<f32>
      train.yield %b : tensor<f32>
    } backward (%d0, %z0) {
      train.yield
    } forward 1 (%x1, %y1) {
      train.yield
    } backward 1 (%d, %z) onto (%s = 1) {
      %w = tx.add %s, %d : (!p, !p) -> !p
      %t, %q = zero.reduce_scatter_start %w over "dp" {train.last} : !p -> i64, !shard
      train.yield %w : !p last %t, %q : i64, !shard
    } {order = #train.order<2 x (forward.1 0, backward.1 0), 2 x (forward 0, backward 0)>}
    %r = par.wait %token, %shard : i64, !shard -> !shard
    return %f, %r : tensor<f32>, !shard
  }
}
