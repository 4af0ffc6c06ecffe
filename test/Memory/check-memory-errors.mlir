// RUN: partita-opt %s --check-memory --split-input-file --verify-diagnostics

// The place of a value that is read again is given to another one.
module attributes {rt.arena_bytes = 128 : i64, rt.persistent_bytes = 0 : i64} {
  func.func @again(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-note @below {{it is made here}}
    %0 = tx.relu %x {rt.buffers = [#rt.at<arena 0>]} : (tensor<4xf32>) -> tensor<4xf32>
    // expected-note @below {{and overwritten here}}
    %1 = tx.exp %0 {rt.buffers = [#rt.at<arena 0>]} : (tensor<4xf32>) -> tensor<4xf32>
    // expected-error @below {{needs the value that 'tx.relu' puts at byte 0 of the arena, where 'tx.exp' has written since}}
    %2 = tx.add %0, %1 {rt.buffers = [#rt.at<arena 64>]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %2 : tensor<4xf32>
  }
}

// -----

// A parameter's shard is of another type than what is read and written.
module attributes {rt.arena_bytes = 0 : i64, rt.persistent_bytes = 64 : i64} {
  // expected-error @below {{has 'tensor<8xf32>' as its rt.local, but is read and written as 'tensor<16xf32>'}}
  train.parameter @w : tensor<16xf32> {rt.at = #rt.at<persistent 0>, rt.local = tensor<8xf32>}
  func.func @init() attributes {train.entry_point = #train.entry_point<init>} {
    %0 = train.initial_value @w {rt.buffers = [#rt.at<persistent 0>]} : tensor<16xf32>
    train.write @w, %0 : tensor<16xf32>
    return
  }
}

// -----

module attributes {rt.arena_bytes = 0 : i64, rt.persistent_bytes = 128 : i64} {
  // expected-note @below {{that is placed at #rt.at<persistent 0> here}}
  train.parameter @a : tensor<16xf32> {rt.at = #rt.at<persistent 0>, rt.local = tensor<16xf32>}
  // expected-error @below {{shares byte 48 of the persistent memory with @a}}
  train.parameter @b : tensor<16xf32> {rt.at = #rt.at<persistent 48>, rt.local = tensor<16xf32>}
}

// -----

module attributes {rt.arena_bytes = 0 : i64, rt.persistent_bytes = 64 : i64} {
  // expected-error @below {{is placed at #rt.at<persistent 16>, up to byte 80 of the persistent memory, which has 64}}
  train.parameter @a : tensor<16xf32> {rt.at = #rt.at<persistent 16>, rt.local = tensor<16xf32>}
}

// -----

module attributes {rt.arena_bytes = 0 : i64, rt.persistent_bytes = 128 : i64} {
  // expected-error @below {{is placed at #rt.at<persistent 8>; its place begins at a multiple of 16 bytes}}
  train.parameter @a : tensor<16xf32> {rt.at = #rt.at<persistent 8>, rt.local = tensor<16xf32>}
}

// -----

module attributes {rt.arena_bytes = 0 : i64, rt.persistent_bytes = 64 : i64} {
  // expected-error @below {{is placed at #rt.at<host 0>; it lives in the persistent memory, dense}}
  train.parameter @a : tensor<16xf32> {rt.at = #rt.at<host 0>, rt.local = tensor<16xf32>}
}

// -----

module attributes {rt.arena_bytes = 0 : i64, rt.persistent_bytes = 64 : i64, pipe.stage = 0 : i64} {
  // expected-error @below {{is placed at #rt.at<persistent 0>, and other pipeline stages have it at 64}}
  train.parameter @a : tensor<16xf32> {pipe.offset = 64 : i64, rt.at = #rt.at<persistent 0>, rt.local = tensor<16xf32>}
}

// -----

// The initial value of one parameter lies in another's memory.
module attributes {rt.arena_bytes = 0 : i64, rt.persistent_bytes = 128 : i64} {
  train.parameter @a : tensor<16xf32> {rt.at = #rt.at<persistent 0>, rt.local = tensor<16xf32>}
  train.parameter @b : tensor<16xf32> {rt.at = #rt.at<persistent 64>, rt.local = tensor<16xf32>}
  func.func @init() attributes {train.entry_point = #train.entry_point<init>} {
    // expected-error @below {{has a result at byte 64 of the persistent memory, which is not the place of a parameter or state that it is written to}}
    %0 = train.initial_value @a {rt.buffers = [#rt.at<persistent 64>]} : tensor<16xf32>
    train.write @a, %0 : tensor<16xf32>
    %1 = train.initial_value @b {rt.buffers = [#rt.at<persistent 64>]} : tensor<16xf32>
    train.write @b, %1 : tensor<16xf32>
    return
  }
}

// -----

// It lies beyond all memory.
module attributes {rt.arena_bytes = 0 : i64, rt.persistent_bytes = 64 : i64} {
  train.parameter @a : tensor<16xf32> {rt.at = #rt.at<persistent 0>, rt.local = tensor<16xf32>}
  func.func @init() attributes {train.entry_point = #train.entry_point<init>} {
    // expected-error @below {{has a 'tensor<16xf32>' at #rt.at<persistent 99999984>, up to byte 100000048 of the persistent memory, which has 64}}
    %0 = train.initial_value @a {rt.buffers = [#rt.at<persistent 99999984>]} : tensor<16xf32>
    train.write @a, %0 : tensor<16xf32>
    return
  }
}

// -----

module attributes {rt.arena_bytes = 0 : i64, rt.persistent_bytes = 128 : i64} {
  train.parameter @a : tensor<16xf32> {rt.at = #rt.at<persistent 0>, rt.local = tensor<16xf32>}
  train.parameter @b : tensor<16xf32> {rt.at = #rt.at<persistent 64>, rt.local = tensor<16xf32>}
  func.func @train_step() attributes {train.entry_point = #train.entry_point<train_step>} {
    // expected-error @below {{has its result at #rt.at<persistent 64>, and @a is at #rt.at<persistent 0>}}
    %0 = train.read @a {rt.buffers = [#rt.at<persistent 64>]} : tensor<16xf32>
    return
  }
}

// -----

// The old value is read after the update, which stands over it.
module attributes {rt.arena_bytes = 64 : i64, rt.persistent_bytes = 64 : i64} {
  // expected-note @below {{it is made here}}
  train.parameter @a : tensor<16xf32> {rt.at = #rt.at<persistent 0>, rt.local = tensor<16xf32>}
  func.func @train_step() -> tensor<16xf32> attributes {train.entry_point = #train.entry_point<train_step>} {
    %0 = train.read @a {rt.buffers = [#rt.at<persistent 0>]} : tensor<16xf32>
    // expected-note @below {{and overwritten here}}
    %1 = tx.neg %0 {rt.buffers = [#rt.at<persistent 0>]} : (tensor<16xf32>) -> tensor<16xf32>
    // expected-error @below {{needs the value of @a at byte 0 of the persistent memory, where 'tx.neg' has written since}}
    %2 = tx.exp %0 {rt.buffers = [#rt.at<arena 0>]} : (tensor<16xf32>) -> tensor<16xf32>
    train.write @a, %1 : tensor<16xf32>
    return %2 : tensor<16xf32>
  }
}

// -----

// More memory than is used is reported where it is not needed.
// expected-error @below {{rt.arena_bytes is 4096, and the program uses 64 bytes; run plan-memory again after a pass that removes ops}}
module attributes {rt.arena_bytes = 4096 : i64, rt.persistent_bytes = 0 : i64} {
  func.func @large(%x: tensor<4xf32>) {
    %0 = tx.relu %x {rt.buffers = [#rt.at<arena 0>]} : (tensor<4xf32>) -> tensor<4xf32>
    return
  }
}

// -----

// expected-error @below {{rt.arena_bytes is -64 : i64, expected a number of bytes, an i64}}
module attributes {rt.arena_bytes = -64 : i64, rt.persistent_bytes = 0 : i64} {}

// -----

// expected-error @below {{has no attribute 'rt.arena_bytes'; run plan-memory first}}
module {}

// -----

module attributes {rt.arena_bytes = 64 : i64, rt.persistent_bytes = 0 : i64} {
  func.func @nowhere(%x: tensor<4xf32>) {
    // expected-error @below {{has no rt.buffers; run plan-memory first}}
    %0 = tx.relu %x : (tensor<4xf32>) -> tensor<4xf32>
    return
  }
}

// -----

module attributes {rt.arena_bytes = 64 : i64, rt.persistent_bytes = 0 : i64} {
  func.func @strides(%x: tensor<4xf32>) {
    // expected-error @below {{has a 'tensor<4xf32>' at #rt.at<arena 0, [4, 1]>; a place has an offset, and perhaps a stride for each dimension, none below 0}}
    %0 = tx.relu %x {rt.buffers = [#rt.at<arena 0, [4, 1]>]} : (tensor<4xf32>) -> tensor<4xf32>
    return
  }
}

// -----

module attributes {rt.arena_bytes = 64 : i64, rt.persistent_bytes = 0 : i64} {
  func.func @overflow(%x: tensor<4x4xf32>) {
    // expected-error @below {{a place has an offset, and perhaps a stride for each dimension, none below 0}}
    %0 = tx.relu %x {rt.buffers = [#rt.at<arena 0, [4611686018427387904, 1]>]} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    return
  }
}

// -----

module attributes {rt.arena_bytes = 64 : i64, rt.persistent_bytes = 0 : i64} {
  func.func @odd(%x: tensor<4xf32>) {
    // expected-error @below {{has a 'tensor<4xf32>' at #rt.at<arena 2>, and an element of it needs a multiple of 4 bytes}}
    %0 = tx.relu %x {rt.buffers = [#rt.at<arena 2>]} : (tensor<4xf32>) -> tensor<4xf32>
    return
  }
}

// -----

// A kernel of the device does not write to the host's memory.
module attributes {rt.arena_bytes = 0 : i64, rt.persistent_bytes = 0 : i64, rt.pinned_bytes = 64 : i64} {
  func.func @host(%x: tensor<4xf32>) {
    // expected-error @below {{has result number 0 at #rt.at<pinned 0>, and its kernel writes to the device's memory}}
    %0 = tx.relu %x {rt.buffers = [#rt.at<pinned 0>]} : (tensor<4xf32>) -> tensor<4xf32>
    return
  }
}

// -----

// A value without memory that is no literal.
module attributes {rt.arena_bytes = 64 : i64, rt.persistent_bytes = 0 : i64} {
  func.func @literal(%x: tensor<4xf32>) {
    %0 = tx.relu %x {rt.buffers = [#rt.at<none>]} : (tensor<4xf32>) -> tensor<4xf32>
    // expected-error @below {{needs operand number 0 in memory, and its place is #rt.at<none>}}
    %1 = tx.exp %0 {rt.buffers = [#rt.at<arena 0>]} : (tensor<4xf32>) -> tensor<4xf32>
    return
  }
}

// -----

// A matmul cannot write over what it multiplies.
module attributes {rt.arena_bytes = 64 : i64, rt.persistent_bytes = 0 : i64} {
  func.func @in_place(%x: tensor<4x4xf32>) {
    %0 = tx.relu %x {rt.buffers = [#rt.at<arena 0>]} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    // expected-error @below {{writes result number 0 at #rt.at<arena 0> over operand number 0 at #rt.at<arena 0>, which its kernel still reads}}
    %1 = tx.matmul %0, %x {rt.buffers = [#rt.at<arena 0>]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    return
  }
}

// -----

// Scratch memory lies where an operand is.
module attributes {rt.arena_bytes = 4096 : i64, rt.persistent_bytes = 0 : i64} {
  func.func @scratch(%x: tensor<1x4x1x16xf32>, %lse: tensor<1x1x4xf32>) {
    // expected-note @below {{it is made here}}
    %q = tx.neg %x {rt.buffers = [#rt.at<arena 1024>]} : (tensor<1x4x1x16xf32>) -> tensor<1x4x1x16xf32>
    // expected-error @below {{needs the value that 'tx.neg' puts at byte 1024 of the arena, where 'tx.attention_grad' has written since}}
    // expected-note @below {{and overwritten here}}
    %dq, %dk, %dv = tx.attention_grad %q, %x, %x, %x, %lse, %x scale 2.500000e-01 causal {rt.buffers = [#rt.at<arena 0>, #rt.at<arena 256>, #rt.at<arena 512>], rt.workspace = #rt.at<arena 1024>} : (tensor<1x4x1x16xf32>, tensor<1x4x1x16xf32>, tensor<1x4x1x16xf32>, tensor<1x4x1x16xf32>, tensor<1x1x4xf32>, tensor<1x4x1x16xf32>) -> (tensor<1x4x1x16xf32>, tensor<1x4x1x16xf32>, tensor<1x4x1x16xf32>)
    return
  }
}

// -----

// The result of a wait stands elsewhere than the collective has worked.
!p = tensor<16xf32, #par.place<[16], partial [dp]>>
module attributes {par.mesh = #par.mesh<dp = 2>, rt.arena_bytes = 128 : i64, rt.persistent_bytes = 0 : i64} {
  func.func @moved(%z: !p) attributes {par.no_cotangents} {
    %a = tx.neg %z {rt.buffers = [#rt.at<arena 0>]} : (!p) -> !p
    %t = par.all_reduce_start %a over "dp" {rt.buffers = [#rt.at<arena 0>]} : !p -> i64
    // expected-error @below {{has result number 0 at #rt.at<arena 64>, and 'par.all_reduce_start' works at #rt.at<arena 0>}}
    %r = par.wait %t, %a {rt.buffers = [#rt.at<arena 64>]} : i64, !p -> tensor<16xf32>
    return
  }
}

// -----

// What one micro-batch leaves meets the next one: %w is from outside of the loop.
module attributes {rt.arena_bytes = 128 : i64, rt.persistent_bytes = 0 : i64} {
  func.func @loop(%xs: tensor<2x4xf32>, %v: tensor<4xf32>) {
    // expected-note @below {{it is made here}}
    %w = tx.neg %v {rt.buffers = [#rt.at<arena 64>]} : (tensor<4xf32>) -> tensor<4xf32>
    %0 = train.accumulate (%x = %xs) : (tensor<2x4xf32>) -> tensor<4xf32> {
      // expected-error @below {{needs the value that 'tx.neg' puts at byte 64 of the arena, where 'tx.exp' has written since}}
      %a = tx.add %x, %w {rt.buffers = [#rt.at<arena 80>]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      // expected-note @below {{and overwritten here}}
      %b = tx.exp %a {rt.buffers = [#rt.at<arena 64>]} : (tensor<4xf32>) -> tensor<4xf32>
      train.yield %b : tensor<4xf32>
    } {rt.buffers = [#rt.at<arena 0>]}
    return
  }
}

// -----

// @forward returns two results in one place.
module attributes {rt.arena_bytes = 64 : i64, rt.persistent_bytes = 0 : i64} {
  func.func @forward(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {train.entry_point = #train.entry_point<forward>} {
    // expected-error @below {{needs the value that 'func.return' puts at byte 0 of the arena, where 'func.return' has written since}}
    // expected-note @below {{it is made here}}
    // expected-note @below {{and overwritten here}}
    return {rt.buffers = [#rt.at<arena 0>, #rt.at<arena 0>]} %x, %y : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

module attributes {rt.arena_bytes = 0 : i64, rt.persistent_bytes = 64 : i64} {
  // expected-error @below {{is of type 'tensor<?xf32>'; memory is for tensors of known size only}}
  train.parameter @a : tensor<?xf32> {rt.at = #rt.at<persistent 0>, rt.local = tensor<?xf32>}
}
