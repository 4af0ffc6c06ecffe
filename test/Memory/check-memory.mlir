// RUN: partita-opt %s --check-memory | FileCheck %s

// In place where kernels allow it; columns beside each other; parts of a concatenation computed in their places; a value that dies
// makes room; an update over its parameter; and the sizes are what is used.
// CHECK-LABEL: func.func @init
module attributes {rt.arena_bytes = 256 : i64, rt.persistent_bytes = 80 : i64} {
  train.parameter @w : tensor<16xf32> {rt.at = #rt.at<persistent 0>, rt.local = tensor<16xf32>}
  train.state @s : tensor<f32> = 1.0 {rt.at = #rt.at<persistent 64>, rt.local = tensor<f32>}
  func.func @init() attributes {train.entry_point = #train.entry_point<init>} {
    %0 = train.initial_value @w {rt.buffers = [#rt.at<persistent 0>]} : tensor<16xf32>
    train.write @w, %0 : tensor<16xf32>
    %1 = train.initial_value @s {rt.buffers = [#rt.at<persistent 64>]} : tensor<f32>
    train.write @s, %1 : tensor<f32>
    return
  }
  func.func @train_step(%x: tensor<4x4xf32>, %xs: tensor<2x16xf32>) -> tensor<f32> attributes {train.entry_point = #train.entry_point<train_step>} {
    %w = train.read @w {rt.buffers = [#rt.at<persistent 0>]} : tensor<16xf32>
    %left = tx.neg %x {rt.buffers = [#rt.at<arena 0, [8, 1]>]} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %right = tx.exp %x {rt.buffers = [#rt.at<arena 16, [8, 1]>]} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %both = tx.concat %left, %right along 1 {rt.buffers = [#rt.at<arena 0>]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x8xf32>
    %again = tx.slice %both [0, 4] by [1, 1] {rt.buffers = [#rt.at<arena 16, [8, 1]>]} : tensor<4x8xf32> -> tensor<4x4xf32>
    %dense = tx.relu %again {rt.buffers = [#rt.at<arena 128>]} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %flat = tx.reshape %dense {rt.buffers = [#rt.at<arena 128>]} : tensor<4x4xf32> -> tensor<16xf32>
    %sum = train.accumulate (%m = %xs) : (tensor<2x16xf32>) -> tensor<16xf32> {
      %a = tx.add %m, %flat {rt.buffers = [#rt.at<arena 64>]} : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
      %b = tx.exp %a {rt.buffers = [#rt.at<arena 64>]} : (tensor<16xf32>) -> tensor<16xf32>
      train.yield %b : tensor<16xf32>
    } {rt.buffers = [#rt.at<arena 0>]}
    %new = tx.sub %w, %sum {rt.buffers = [#rt.at<persistent 0>]} : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    train.write @w, %new : tensor<16xf32>
    %loss = tx.reduce_sum %sum [0] {rt.buffers = [#rt.at<arena 192>]} : tensor<16xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
