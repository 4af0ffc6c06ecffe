// RUN: partita-opt %s --pass-pipeline='builtin.module(builtin.module(check-memory))' --mlir-disable-threading --split-input-file --verify-diagnostics

// One block too few: micro-batch 1 saves where micro-batch 0 still has what its backward pass needs.
module {
module attributes {pipe.stage = 0 : i64, rt.arena_bytes = 448 : i64, rt.persistent_bytes = 0 : i64} {
  func.func @blocks(%xs: tensor<4x4xf32>) {
    // expected-note @below {{ring 0 has 1 blocks}}
    %0 = train.accumulate (%x = %xs) : (tensor<4x4xf32>) -> tensor<4xf32> {
      // expected-note @below {{it is made here}}
      %s = tx.exp %x {rt.buffers = [#rt.at<in_flight 0>]} : (tensor<4xf32>) -> tensor<4xf32>
      train.yield saves %s : tensor<4xf32>
    } backward (%x1, %s1) {
      // expected-error @below {{needs the value that 'tx.exp' saves for micro-batch 0 at byte 64 of the arena, where forward of micro-batch 1 has written since}}
      %d = tx.neg %s1 {rt.buffers = [#rt.at<arena 384>]} : (tensor<4xf32>) -> tensor<4xf32>
      train.yield %d : tensor<4xf32>
    } {order = #train.order<1 x (forward 0), 3 x (forward 1, backward 0), 1 x (backward 3)>, rt.in_flight = #rt.in_flight<1 x 64 at 64>, rt.buffers = [#rt.at<arena 0>]}
    return
  }
}
}

// -----

// Two are enough.
module {
module attributes {pipe.stage = 0 : i64, rt.arena_bytes = 448 : i64, rt.persistent_bytes = 0 : i64} {
  func.func @enough(%xs: tensor<4x4xf32>) {
    %0 = train.accumulate (%x = %xs) : (tensor<4x4xf32>) -> tensor<4xf32> {
      %s = tx.exp %x {rt.buffers = [#rt.at<in_flight 0>]} : (tensor<4xf32>) -> tensor<4xf32>
      train.yield saves %s : tensor<4xf32>
    } backward (%x1, %s1) {
      %d = tx.neg %s1 {rt.buffers = [#rt.at<arena 384>]} : (tensor<4xf32>) -> tensor<4xf32>
      train.yield %d : tensor<4xf32>
    } {order = #train.order<1 x (forward 0), 3 x (forward 1, backward 0), 1 x (backward 3)>, rt.in_flight = #rt.in_flight<2 x 64 at 64>, rt.buffers = [#rt.at<arena 0>]}
    return
  }
}
}

// -----

// A temporary lies in a block of another micro-batch.
module {
module attributes {pipe.stage = 0 : i64, rt.arena_bytes = 448 : i64, rt.persistent_bytes = 0 : i64} {
  func.func @temporary(%xs: tensor<4x4xf32>) {
    %0 = train.accumulate (%x = %xs) : (tensor<4x4xf32>) -> tensor<4xf32> {
      %s = tx.exp %x {rt.buffers = [#rt.at<in_flight 0>]} : (tensor<4xf32>) -> tensor<4xf32>
      train.yield saves %s : tensor<4xf32>
    } backward (%x1, %s1) {
      // expected-error @below {{writes byte 128 of the arena, where the loop keeps its micro-batches in flight}}
      %d = tx.neg %s1 {rt.buffers = [#rt.at<arena 128>]} : (tensor<4xf32>) -> tensor<4xf32>
      train.yield %d : tensor<4xf32>
    } {order = #train.order<1 x (forward 0), 3 x (forward 1, backward 0), 1 x (backward 3)>, rt.in_flight = #rt.in_flight<2 x 64 at 64>, rt.buffers = [#rt.at<arena 0>]}
    return
  }
}
}

// -----

// Two rings share bytes.
module {
module attributes {pipe.stage = 0 : i64, rt.arena_bytes = 448 : i64, rt.persistent_bytes = 0 : i64} {
  func.func @rings(%xs: tensor<2x4xf32>) {
    // expected-error @below {{has rings 0 and 1 of #rt.in_flight<2 x 64 at 64, 1 x 64 at 128> share byte 128 of the arena}}
    %0 = train.accumulate (%x = %xs) : (tensor<2x4xf32>) -> tensor<4xf32> {
      train.yield
    } backward (%x1) {
      %d = tx.neg %x1 {rt.buffers = [#rt.at<arena 384>]} : (tensor<4xf32>) -> tensor<4xf32>
      train.yield %d : tensor<4xf32>
    } {order = #train.order<1 x (forward 0), 1 x (forward 1, backward 0), 1 x (backward 1)>, rt.in_flight = #rt.in_flight<2 x 64 at 64, 1 x 64 at 128>, rt.buffers = [#rt.at<arena 0>]}
    return
  }
}
}

// -----

// A value ends after its block.
module {
module attributes {pipe.stage = 0 : i64, rt.arena_bytes = 448 : i64, rt.persistent_bytes = 0 : i64} {
  func.func @behind(%xs: tensor<2x4xf32>) {
    %0 = train.accumulate (%x = %xs) : (tensor<2x4xf32>) -> tensor<4xf32> {
      // expected-error @below {{has a place at #rt.at<in_flight 56> that ends after the 64 bytes of a block of ring 0 of #rt.in_flight<2 x 64 at 64>}}
      %s = tx.exp %x {rt.buffers = [#rt.at<in_flight 56>]} : (tensor<4xf32>) -> tensor<4xf32>
      train.yield saves %s : tensor<4xf32>
    } backward (%x1, %s1) {
      %d = tx.neg %s1 {rt.buffers = [#rt.at<arena 384>]} : (tensor<4xf32>) -> tensor<4xf32>
      train.yield %d : tensor<4xf32>
    } {order = #train.order<1 x (forward 0), 1 x (forward 1, backward 0), 1 x (backward 1)>, rt.in_flight = #rt.in_flight<2 x 64 at 64>, rt.buffers = [#rt.at<arena 0>]}
    return
  }
}
}

// -----

// What the last slot reduces in place is overwritten by a pass that ends later, before it is awaited.
!p = tensor<64xf32, #par.place<[64], partial [dp]>>
!ps = tensor<2x64xf32, #par.place<[2, 64], partial [dp]>>
!shard = tensor<32xf32, #par.place<[64], flat [dp]>>
module {
module attributes {pipe.stage = 0 : i64, par.mesh = #par.mesh<dp = 2>, rt.arena_bytes = 704 : i64, rt.persistent_bytes = 0 : i64} {
  func.func @last(%xs: !ps, %ys: tensor<2x64xf32>) attributes {par.no_cotangents} {
    %f, %dw, %token, %shard = train.accumulate (%x = %xs, %y = %ys) : (!ps, tensor<2x64xf32>) -> (tensor<f32>, !p, i64, !shard) {
      // expected-note @below {{and overwritten here}}
      %a = tx.exp %y {rt.buffers = [#rt.at<arena 320>]} : (tensor<64xf32>) -> tensor<64xf32>
      %b = tx.reduce_sum %a [0] {rt.buffers = [#rt.at<arena 640>]} : tensor<64xf32> -> tensor<f32>
      train.yield %b : tensor<f32>
    } backward (%d0, %z0) {
      train.yield
    } forward 1 (%x1, %y1) {
      train.yield
    } backward 1 (%d, %z) onto (%s = 1) {
      %w = tx.add %s, %d {rt.buffers = [#rt.at<arena 64>]} : (!p, !p) -> !p
      // expected-note @below {{it is made here}}
      %t, %q = zero.reduce_scatter_start %w over "dp" {train.last, rt.buffers = [#rt.at<arena 320>]} : !p -> i64, !shard
      train.yield %w : !p last %t, %q : i64, !shard
    } {order = #train.order<2 x (forward.1 0, backward.1 0), 2 x (forward 0, backward 0)>, rt.in_flight = #rt.in_flight<>, rt.buffers = [#rt.at<arena 0>, #rt.at<arena 64>, #rt.at<arena 320>]}
    // expected-error @below {{needs the value that 'zero.reduce_scatter_start' puts at byte 320 of the arena, where 'tx.exp' has written since}}
    %r = par.wait %token, %shard {rt.buffers = [#rt.at<arena 320>]} : i64, !shard -> !shard
    return
  }
}
}
