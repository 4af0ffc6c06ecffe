// RUN: partita-opt %s --pass-pipeline='builtin.module(builtin.module(check-streams))' --split-input-file --verify-diagnostics

// A backward pass receives where the forward pass's output lies that is still being sent: the send is awaited before the next forward pass.
module {
module attributes {pipe.stage = 0 : i64, rt.arena_bytes = 4096 : i64, rt.persistent_bytes = 0 : i64} {
  func.func @received(%xs: tensor<3x64xf32>) {
    %0 = train.accumulate (%x = %xs) : (tensor<3x64xf32>) -> tensor<64xf32> {
      %y = tx.exp %x {rt.buffers = [#rt.at<arena 0>]} : (tensor<64xf32>) -> tensor<64xf32>
      // expected-note @below {{it is sent here, and waited for when this pass runs again}}
      pipe.send %y over <0 to 1> : tensor<64xf32>
      train.yield
    } backward (%x1) {
      // expected-error @below {{writes byte 128 of the arena, which 'pipe.send' on the stream #pipe.channel<0 to 1> still reads; nothing orders the two}}
      %dy = pipe.recv over <1 to 0> {rt.buffers = [#rt.at<arena 128>]} : tensor<64xf32>
      train.yield %dy : tensor<64xf32>
    } {order = #train.order<1 x (forward 0), 2 x (forward 1, backward 0), 1 x (backward 2)>, rt.buffers = [#rt.at<arena 1024>]}
    return
  }
}
}

// -----

// The rest of the pass: what stands in front of the send is complete, what stands after it is not awaited.
module {
module attributes {pipe.stage = 1 : i64, rt.arena_bytes = 4096 : i64, rt.persistent_bytes = 0 : i64} {
  func.func @rest(%xs: tensor<2x64xf32>) {
    %0 = train.accumulate (%x = %xs) : (tensor<2x64xf32>) -> tensor<64xf32> {
      %y = tx.exp %x {rt.buffers = [#rt.at<arena 0>]} : (tensor<64xf32>) -> tensor<64xf32>
      // expected-note @below {{it is sent here}}
      pipe.send %y over <1 to 0> : tensor<64xf32>
      // expected-error @below {{writes byte 0 of the arena, which 'pipe.send' on the stream #pipe.channel<1 to 0> still reads}}
      %z = tx.neg %y {rt.buffers = [#rt.at<arena 0>]} : (tensor<64xf32>) -> tensor<64xf32>
      train.yield %z : tensor<64xf32>
    } {order = #train.order<2 x (forward 0)>, rt.buffers = [#rt.at<arena 1024>]}
    return
  }
}
}

// -----

// A pass adds what it yields to a sum.
module {
module attributes {pipe.stage = 1 : i64, rt.arena_bytes = 4096 : i64, rt.persistent_bytes = 0 : i64} {
  func.func @sum(%xs: tensor<2x64xf32>) {
    %0 = train.accumulate (%x = %xs) : (tensor<2x64xf32>) -> tensor<64xf32> {
      %y = tx.exp %x {rt.buffers = [#rt.at<arena 0>]} : (tensor<64xf32>) -> tensor<64xf32>
      // expected-note @below {{it is sent here}}
      pipe.send %y over <1 to 0> : tensor<64xf32>
      // expected-error @below {{writes byte 252 of the arena, which 'pipe.send' on the stream #pipe.channel<1 to 0> still reads}}
      train.yield %y : tensor<64xf32>
    } {order = #train.order<2 x (forward 0)>, rt.buffers = [#rt.at<arena 252>]}
    return
  }
}
}

// -----

// Its block is another micro-batch's too soon: 1 block for what the backward pass sends of its forward pass, and micro-batch 1 runs
// before the backward pass runs again.
module {
module attributes {pipe.stage = 0 : i64, rt.arena_bytes = 4096 : i64, rt.persistent_bytes = 0 : i64} {
  func.func @block(%xs: tensor<2x64xf32>) {
    train.accumulate (%x = %xs) : (tensor<2x64xf32>) -> () {
      // expected-error @below {{writes byte 1024 of the arena, which 'pipe.send' on the stream #pipe.channel<0 to 1> still reads}}
      %y = tx.exp %x {rt.buffers = [#rt.at<in_flight 0>]} : (tensor<64xf32>) -> tensor<64xf32>
      train.yield saves %y : tensor<64xf32>
    } backward (%x1, %y1) {
      // expected-note @below {{it is sent here}}
      pipe.send %y1 over <0 to 1> : tensor<64xf32>
      train.yield
    } {order = #train.order<2 x (forward 0, backward 0)>, rt.in_flight = #rt.in_flight<1 x 256 at 1024>, rt.buffers = []}
    return
  }
}
}

// -----

// A block overlaps what another pass has in the arena: the second block of two, that of micro-batch 1.
module {
module attributes {pipe.stage = 0 : i64, rt.arena_bytes = 4096 : i64, rt.persistent_bytes = 0 : i64} {
  func.func @arena(%xs: tensor<2x64xf32>) {
    train.accumulate (%x = %xs) : (tensor<2x64xf32>) -> () {
      %y = tx.exp %x {rt.buffers = [#rt.at<in_flight 0>]} : (tensor<64xf32>) -> tensor<64xf32>
      // expected-note @below {{it is sent here}}
      pipe.send %y over <0 to 1> : tensor<64xf32>
      train.yield saves %y : tensor<64xf32>
    } backward (%x1, %y1) {
      // expected-error @below {{writes byte 1344 of the arena, which 'pipe.send' on the stream #pipe.channel<0 to 1> still reads}}
      %z = tx.neg %y1 {rt.buffers = [#rt.at<arena 1344>]} : (tensor<64xf32>) -> tensor<64xf32>
      train.yield
    } {order = #train.order<2 x (forward 0, backward 0)>, rt.in_flight = #rt.in_flight<2 x 256 at 1024>, rt.buffers = []}
    return
  }
}
}
