// RUN: partita-opt %s --pass-pipeline='builtin.module(builtin.module(check-streams))' | FileCheck %s

// What is sent is left alone until its pass runs again: what stands in front of the send, the next run of the pass and what stands after
// the loop may write it. Of three blocks, the one that the backward pass sends is not the one that the forward pass fills meanwhile.
// CHECK-LABEL: func.func @ordered
module {
module attributes {pipe.stage = 0 : i64, rt.arena_bytes = 8192 : i64, rt.persistent_bytes = 0 : i64} {
  func.func @ordered(%xs: tensor<4x64xf32>, %v: tensor<64xf32>) {
    %0 = train.accumulate (%x = %xs) : (tensor<4x64xf32>) -> tensor<64xf32> {
      %a = tx.exp %x {rt.buffers = [#rt.at<arena 0>]} : (tensor<64xf32>) -> tensor<64xf32>
      %y = tx.neg %a {rt.buffers = [#rt.at<arena 0>]} : (tensor<64xf32>) -> tensor<64xf32>
      pipe.send %y over <0 to 1> : tensor<64xf32>
      %s = tx.exp %y {rt.buffers = [#rt.at<in_flight 0>]} : (tensor<64xf32>) -> tensor<64xf32>
      train.yield saves %s : tensor<64xf32>
    } backward (%x1, %s1) {
      %dy = pipe.recv over <1 to 0> {rt.buffers = [#rt.at<arena 256>]} : tensor<64xf32>
      pipe.send %s1 over <0 to 1, number 1> : tensor<64xf32>
      train.yield %dy : tensor<64xf32>
    } {order = #train.order<1 x (forward 0), 3 x (forward 1, backward 0), 1 x (backward 3)>, rt.in_flight = #rt.in_flight<3 x 256 at 1024>, rt.buffers = [#rt.at<arena 4096>]}
    %b = tx.exp %v {rt.buffers = [#rt.at<arena 0>]} : (tensor<64xf32>) -> tensor<64xf32>
    return
  }
}
}
