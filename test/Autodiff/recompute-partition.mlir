// RUN: partita-opt %s --recompute="policy=block partition=true" | FileCheck %s
// RUN: partita-opt %s --recompute=policy=block | FileCheck %s --check-prefix=FULL
// FULL-NOT: zero.

// What enters the layer alike on both ranks of tp is kept as a shard on each, and gathered for all that the layer's backward pass does
// with it: nothing of the backward pass uses the full value any more. A shard stays what it is.
!t = tensor<4x5xf32>
!s = tensor<5x3xf32, #par.place<[5, 6 @tp]>>
!y = tensor<4x3xf32, #par.place<[4, 6 @tp]>>
module attributes {par.mesh = #par.mesh<tp = 2>} {
  // CHECK-LABEL: func @example
  // CHECK: %[[X:.*]] = tx.neg %{{.*}}
  // CHECK-NEXT: %[[P:.*]] = zero.shard %[[X]] over "tp"{{.*}} : tensor<4x5xf32> -> tensor<10xf32, #par.place<[4, 5], flat [tp]>>
  // CHECK-NEXT: %[[N:.*]] = tx.exp %[[X]]
  // CHECK-NEXT: tx.matmul %[[N]]
  // CHECK-NEXT: train.yield %{{.*}} saves %[[P]] :
  // CHECK-NEXT: } backward (%{{.*}}, %[[P1:.*]]) {
  // CHECK-NEXT: %[[B:.*]] = train.barrier %[[P1]]
  // CHECK-NEXT: %[[W:.*]] = zero.gather %[[B]] over "tp" because "kept shard"
  // CHECK-NEXT: %[[N2:.*]] = tx.exp %[[W]]
  // CHECK-NEXT: tx.matmul_tn %[[N2]], %arg2
  // CHECK-NEXT: tx.mul %[[W]]
  func.func @example(%xs: tensor<1x4x5xf32>, %w: !s, %dy: !y, %dn: !t) -> (!y, !s, !t) attributes {par.no_cotangents} {
    %sum:3 = train.accumulate (%0 = %xs) : (tensor<1x4x5xf32>) -> (!y, !s, !t) {
      %x = tx.neg %0 : (!t) -> !t loc("head")
      %n = tx.exp %x {train.layer = #train.layer<0 of 1>} : (!t) -> !t
      %y = tx.matmul %n, %w {train.layer = #train.layer<0 of 1>} : (!t, !s) -> !y
      train.yield %y : !y saves %n, %x : !t, !t
    } backward (%1, %n1, %x1) {
      %dw = tx.matmul_tn %n1, %dy {train.backward, train.layer = #train.layer<0 of 1>} : (!t, !y) -> !s
      %dx = tx.mul %x1, %dn {train.backward, train.layer = #train.layer<0 of 1>} : (!t, !t) -> !t
      train.yield %dw, %dx : !s, !t
    }
    return %sum#0, %sum#1, %sum#2 : !y, !s, !t
  }
}
