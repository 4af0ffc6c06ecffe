// RUN: partita-opt %s --check-streams | FileCheck %s

// What is under way is left alone: other bytes, reads of what is only read, and what comes after the wait.
// A view touches nothing; shards that lie between each other's rows touch nothing in common.
// CHECK-LABEL: func.func @ordered
!p = tensor<64xf32, #par.place<[64], partial [dp]>>
module attributes {par.mesh = #par.mesh<dp = 2>, rt.arena_bytes = 4096 : i64, rt.persistent_bytes = 0 : i64} {
  func.func @ordered(%z: !p, %x: tensor<64xf32>, %m: tensor<4x4xf32>) attributes {par.no_cotangents} {
    %a = tx.neg %z {rt.buffers = [#rt.at<arena 0>]} : (!p) -> !p
    %t = par.all_reduce_start %a over "dp" {rt.buffers = [#rt.at<arena 0>]} : !p -> i64
    %b = tx.neg %x {rt.buffers = [#rt.at<arena 256>]} : (tensor<64xf32>) -> tensor<64xf32>
    %token, %host = offload.to_host_start %b {rt.buffers = [#rt.at<pinned 0>]} : tensor<64xf32>
    %c = tx.exp %b {rt.buffers = [#rt.at<arena 512>]} : (tensor<64xf32>) -> tensor<64xf32>
    %r = par.wait %t, %a {rt.buffers = [#rt.at<arena 0>]} : i64, !p -> tensor<64xf32>
    %d = tx.exp %r {rt.buffers = [#rt.at<arena 0>]} : (tensor<64xf32>) -> tensor<64xf32>
    %h = offload.wait %token, %host {rt.buffers = [#rt.at<pinned 0>]} : tensor<64xf32>
    %e = tx.exp %d {rt.buffers = [#rt.at<arena 256>]} : (tensor<64xf32>) -> tensor<64xf32>
    %left = tx.neg %m {rt.buffers = [#rt.at<arena 1024, [8, 1]>]} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %u, %g = offload.to_host_start %left {rt.buffers = [#rt.at<pinned 256>]} : tensor<4x4xf32>
    %right = tx.neg %m {rt.buffers = [#rt.at<arena 1040, [8, 1]>]} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %w = offload.wait %u, %g {rt.buffers = [#rt.at<pinned 256>]} : tensor<4x4xf32>
    return
  }
}
