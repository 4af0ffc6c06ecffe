// RUN: partita-opt %s --check-streams --split-input-file --verify-diagnostics

// A forgotten edge: the computation writes what a sum works in.
!p = tensor<64xf32, #par.place<[64], partial [dp]>>
module attributes {par.mesh = #par.mesh<dp = 2>, rt.arena_bytes = 4096 : i64, rt.persistent_bytes = 0 : i64} {
  func.func @written(%z: !p, %x: tensor<64xf32>) attributes {par.no_cotangents} {
    %a = tx.neg %z {rt.buffers = [#rt.at<arena 0>]} : (!p) -> !p
    // expected-note @below {{it starts here and is waited for later}}
    %t = par.all_reduce_start %a over "dp" {rt.buffers = [#rt.at<arena 0>]} : !p -> i64
    // expected-error @below {{writes byte 128 of the arena, which 'par.all_reduce_start' on the stream #par.stream<"dp"> writes as well; nothing orders the two}}
    %b = tx.neg %x {rt.buffers = [#rt.at<arena 128>]} : (tensor<64xf32>) -> tensor<64xf32>
    %r = par.wait %t, %a {rt.buffers = [#rt.at<arena 0>]} : i64, !p -> tensor<64xf32>
    return
  }
}

// -----

// What is on its way to the host is overwritten.
module attributes {rt.arena_bytes = 4096 : i64, rt.persistent_bytes = 0 : i64} {
  func.func @reused(%x: tensor<64xf32>) {
    %a = tx.neg %x {rt.buffers = [#rt.at<arena 0>]} : (tensor<64xf32>) -> tensor<64xf32>
    // expected-note @below {{it starts here}}
    %token, %host = offload.to_host_start %a {rt.buffers = [#rt.at<pinned 0>]} : tensor<64xf32>
    // expected-error @below {{writes byte 0 of the arena, which 'offload.to_host_start' on the stream #offload.direction<to_host> still reads}}
    %b = tx.neg %x {rt.buffers = [#rt.at<arena 0>]} : (tensor<64xf32>) -> tensor<64xf32>
    %h = offload.wait %token, %host {rt.buffers = [#rt.at<pinned 0>]} : tensor<64xf32>
    return
  }
}

// -----

// A value is read where a copy brings another one already.
module attributes {rt.arena_bytes = 4096 : i64, rt.persistent_bytes = 0 : i64} {
  func.func @early(%x: tensor<64xf32>) {
    %a = tx.neg %x {rt.buffers = [#rt.at<pinned 0>]} : (tensor<64xf32>) -> tensor<64xf32>
    %c = tx.neg %x {rt.buffers = [#rt.at<arena 64>]} : (tensor<64xf32>) -> tensor<64xf32>
    // expected-note @below {{it starts here}}
    %token, %device = offload.to_device_start %a {rt.buffers = [#rt.at<arena 64>]} : tensor<64xf32>
    // expected-error @below {{reads byte 64 of the arena, which 'offload.to_device_start' on the stream #offload.direction<to_device> still writes}}
    %b = tx.neg %c {rt.buffers = [#rt.at<arena 1024>]} : (tensor<64xf32>) -> tensor<64xf32>
    %d = offload.wait %token, %device {rt.buffers = [#rt.at<arena 64>]} : tensor<64xf32>
    return
  }
}

// -----

// Two streams beside each other.
!p = tensor<64xf32, #par.place<[64], partial [dp]>>
module attributes {par.mesh = #par.mesh<dp = 2>, rt.arena_bytes = 4096 : i64, rt.persistent_bytes = 0 : i64} {
  func.func @streams(%z: !p, %x: tensor<64xf32>) attributes {par.no_cotangents} {
    %a = tx.neg %z {rt.buffers = [#rt.at<arena 0>]} : (!p) -> !p
    // expected-note @below {{it starts here}}
    %token, %host = offload.to_host_start %a {rt.buffers = [#rt.at<pinned 0>]} : !p
    // expected-error @below {{writes byte 0 of the arena, which 'offload.to_host_start' on the stream #offload.direction<to_host> still reads}}
    %t = par.all_reduce_start %a over "dp" {rt.buffers = [#rt.at<arena 0>]} : !p -> i64
    %r = par.wait %t, %a {rt.buffers = [#rt.at<arena 0>]} : i64, !p -> tensor<64xf32>
    %h = offload.wait %token, %host {rt.buffers = [#rt.at<pinned 0>]} : !p
    return
  }
}

// -----

// expected-error @below {{has no attribute 'rt.arena_bytes'; run plan-memory first}}
module {
}

// -----

// A kernel's workspace is written as well: here two floats of it.
module attributes {rt.arena_bytes = 4096 : i64, rt.persistent_bytes = 0 : i64} {
  func.func @workspace(%x: tensor<64xf32>, %q: tensor<1x2x1x4xf32>, %lse: tensor<1x1x2xf32>) {
    %a = tx.neg %x {rt.buffers = [#rt.at<arena 0>]} : (tensor<64xf32>) -> tensor<64xf32>
    // expected-note @below {{it starts here}}
    %token, %host = offload.to_host_start %a {rt.buffers = [#rt.at<pinned 0>]} : tensor<64xf32>
    // expected-error @below {{writes byte 64 of the arena, which 'offload.to_host_start' on the stream #offload.direction<to_host> still reads}}
    %0:3 = tx.attention_grad %q, %q, %q, %q, %lse, %q scale 0.5 causal {rt.buffers = [#rt.at<arena 1024>, #rt.at<arena 1056>, #rt.at<arena 1088>], rt.workspace = #rt.at<arena 64>} : (tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x1x2xf32>, tensor<1x2x1x4xf32>) -> (tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>)
    %h = offload.wait %token, %host {rt.buffers = [#rt.at<pinned 0>]} : tensor<64xf32>
    return
  }
}

// -----

// Any byte of a batch may be the micro-batch's that a loop reads: this copy fills the second one.
module attributes {rt.arena_bytes = 8192 : i64, rt.persistent_bytes = 0 : i64} {
  func.func @batch(%x: tensor<2x64xf32>, %w: tensor<64xf32>) {
    %a = tx.neg %x {rt.buffers = [#rt.at<arena 0>]} : (tensor<2x64xf32>) -> tensor<2x64xf32>
    %h = tx.neg %w {rt.buffers = [#rt.at<pinned 0>]} : (tensor<64xf32>) -> tensor<64xf32>
    %s = train.accumulate (%m = %a) : (tensor<2x64xf32>) -> tensor<64xf32> {
      // expected-note @below {{it starts here}}
      %token, %device = offload.to_device_start %h {rt.buffers = [#rt.at<arena 256>]} : tensor<64xf32>
      // expected-error @below {{reads byte 256 of the arena, which 'offload.to_device_start' on the stream #offload.direction<to_device> still writes}}
      %b = tx.neg %m {rt.buffers = [#rt.at<arena 1024>]} : (tensor<64xf32>) -> tensor<64xf32>
      %d = offload.wait %token, %device {rt.buffers = [#rt.at<arena 256>]} : tensor<64xf32>
      %e = tx.add %b, %d {rt.buffers = [#rt.at<arena 1024>]} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
      train.yield %e : tensor<64xf32>
    } {rt.buffers = [#rt.at<arena 4096>]}
    return
  }
}

// -----

// What begins in a pass's last slot is under way in a pass that runs later, though that one stands in front of it in the text.
!p = tensor<64xf32, #par.place<[64], partial [dp]>>
!ps = tensor<2x64xf32, #par.place<[2, 64], partial [dp]>>
module attributes {par.mesh = #par.mesh<dp = 2>, rt.arena_bytes = 4096 : i64, rt.persistent_bytes = 0 : i64} {
  func.func @later_slot(%xs: !ps, %y: tensor<64xf32>) attributes {par.no_cotangents} {
    %dw, %token, %begun = train.accumulate (%x = %xs) : (!ps) -> (!p, i64, !p) {
      // expected-error @below {{writes byte 128 of the arena, which 'par.all_reduce_start' on the stream #par.stream<"dp"> writes as well; nothing orders the two}}
      %f = tx.neg %y {rt.buffers = [#rt.at<arena 128>]} : (tensor<64xf32>) -> tensor<64xf32>
      train.yield
    } backward (%d) {
      train.yield
    } forward 1 (%e) {
      train.yield
    } backward 1 (%g) onto (%s = 0) {
      %w = tx.add %s, %g {rt.buffers = [#rt.at<arena 0>]} : (!p, !p) -> !p
      // expected-note @below {{it starts here and is waited for later}}
      %t = par.all_reduce_start %w over "dp" {train.last, rt.buffers = [#rt.at<arena 0>]} : !p -> i64
      train.yield %w : !p last %t, %w : i64, !p
    } {order = #train.order<2 x (forward.1 0, backward.1 0), 2 x (forward 0, backward 0)>, rt.buffers = [#rt.at<arena 0>, #rt.at<arena 0>]}
    %r = par.wait %token, %begun {rt.buffers = [#rt.at<arena 0>]} : i64, !p -> tensor<64xf32>
    return
  }
}

// -----

// A pass runs once per micro-batch, and only what its last slot starts is waited for after the loop: train.last is missing.
!p = tensor<64xf32, #par.place<[64], partial [dp]>>
!ps = tensor<2x64xf32, #par.place<[2, 64], partial [dp]>>
module attributes {par.mesh = #par.mesh<dp = 2>, rt.arena_bytes = 4096 : i64, rt.persistent_bytes = 0 : i64} {
  func.func @every_slot(%xs: !ps) attributes {par.no_cotangents} {
    %dw, %token, %begun = train.accumulate (%x = %xs) : (!ps) -> (!p, i64, !p) {
      train.yield
    } backward (%g) onto (%s = 0) {
      %w = tx.add %s, %g {rt.buffers = [#rt.at<arena 0>]} : (!p, !p) -> !p
      // expected-error @below {{'par.all_reduce_start' op is still running when its pass ends: only what a pass starts in its last slot (train.last) can be waited for after the loop}}
      %t = par.all_reduce_start %w over "dp" {rt.buffers = [#rt.at<arena 0>]} : !p -> i64
      train.yield %w : !p last %t, %w : i64, !p
    } {order = #train.order<2 x (forward 0, backward 0)>, rt.buffers = [#rt.at<arena 0>, #rt.at<arena 0>]}
    %r = par.wait %token, %begun {rt.buffers = [#rt.at<arena 0>]} : i64, !p -> tensor<64xf32>
    return
  }
}
