// RUN: partita-opt %s --recompute=policy=selective | FileCheck %s --check-prefixes=CHECK,SELECTIVE
// RUN: partita-opt %s --recompute=policy=block | FileCheck %s --check-prefixes=CHECK,BLOCK
// RUN: partita-opt %s --recompute | FileCheck %s --check-prefix=NONE
// RUN: partita-opt %s --recompute=budget=100000 | FileCheck %s --check-prefix=NONE
// RUN: partita-opt %s --recompute=budget=200 | FileCheck %s --check-prefixes=CHECK,SELECTIVE
// A policy beside the budget is all that is recomputed, as far as the budget asks for it.
// RUN: partita-opt %s --recompute="policy=selective budget=100000" | FileCheck %s --check-prefix=NONE
// RUN: partita-opt %s --recompute="policy=block budget=200" | FileCheck %s --check-prefixes=CHECK,BLOCK
// RUN: partita-opt %s --recompute="policy=selective budget=1" 2>&1 | FileCheck %s --check-prefix=DEAR
// DEAR: remark: recompute budget of 1 bytes: the backward pass needs {{[0-9]+}} bytes of activations that are expensive to recompute, or outside any layer
// RUN: partita-opt %s --recompute=budget=1 2>&1 | FileCheck %s --check-prefix=LITTLE
// RUN: not partita-opt %s --recompute=policy=all 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: not partita-opt %s --recompute="policy=selective partition=true" 2>&1 | FileCheck %s --check-prefix=SHARDS
// RUN: not partita-opt %s --recompute="policy=block partition=true" 2>&1 | FileCheck %s --check-prefix=ALONE
// ALONE: error: recompute partition: the ranks of mesh axis 'tp' share what enters a layer, and there is one; give it a mesh with tp=2 or more
// SHARDS: error: recompute partition: only inputs of fully recomputed layers are sharded; use --recompute block or --recompute-budget
// LITTLE: remark: recompute budget of 1 bytes: the backward pass needs 64 bytes of activations before, between and after the layers
// WRONG: error: recompute policy 'all' is unknown; known: none, selective, block
// NONE-NOT: train.barrier

// Once the two passes share a block, nothing merges what is done again with the first time.
// RUN: partita-opt %s --recompute=policy=block --schedule-backward --cse | FileCheck %s --check-prefix=JOINED
// JOINED-COUNT-2: tx.exp

// Kept by `selective`: what enters, and the matmul in front of the activation; by `block`: what enters. Selective clones
// stand before their uses, a block is done once more as a whole. What is kept is the list of saved values.
// CHECK-LABEL: func @example
// CHECK: %[[N:.*]] = tx.exp %{{.*}}
// CHECK-NEXT: %[[U:.*]] = tx.matmul %[[N]], %arg1
// CHECK-NEXT: %[[A:.*]] = tx.tanh %[[U]]
// CHECK-NEXT: %[[Y:.*]] = tx.matmul %[[A]], %arg2
// CHECK-NEXT: %[[L:.*]] = tx.neg %[[Y]]
// SELECTIVE-NEXT: train.yield %[[L]] : tensor<4x4xf32> saves %[[U]], %[[L]] :
// SELECTIVE-NEXT: } backward (%[[X1:.*]], %[[U1:.*]], %[[DY:.*]]) {
// SELECTIVE-NEXT: %[[BU:.*]] = train.barrier %[[U1]]
// SELECTIVE-NEXT: %[[A2:.*]] = tx.tanh %[[BU]]
// SELECTIVE-NEXT: tx.matmul_tn %[[A2]], %[[DY]]
// SELECTIVE-NEXT: %[[DA:.*]] = tx.matmul_nt %[[DY]], %arg2
// SELECTIVE-NEXT: %[[DU:.*]] = tx.mul %[[U1]], %[[DA]]
// SELECTIVE-NEXT: %[[BX:.*]] = train.barrier %[[X1]]
// SELECTIVE-NEXT: %[[N2:.*]] = tx.exp %[[BX]]
// SELECTIVE-NEXT: tx.matmul_tn %[[N2]], %[[DU]]
// BLOCK-NEXT: train.yield %[[L]] : tensor<4x4xf32> saves %[[L]] :
// BLOCK-NEXT: } backward (%[[X1:.*]], %[[DY:.*]]) {
// BLOCK-NEXT: %[[BX:.*]] = train.barrier %[[X1]]
// BLOCK-NEXT: %[[N2:.*]] = tx.exp %[[BX]]
// BLOCK-NEXT: %[[U2:.*]] = tx.matmul %[[N2]], %arg1
// BLOCK-NEXT: %[[A2:.*]] = tx.tanh %[[U2]]
// BLOCK-NEXT: tx.matmul_tn %[[A2]], %[[DY]]
// BLOCK-NEXT: %[[DA:.*]] = tx.matmul_nt
// BLOCK-NEXT: %[[DU:.*]] = tx.mul %[[U2]], %[[DA]]
// BLOCK-NEXT: tx.matmul_tn %[[N2]], %[[DU]]
!t = tensor<4x4xf32>
func.func @example(%xs: tensor<1x4x4xf32>, %w: !t, %v: !t) -> (!t, !t, !t) attributes {par.no_cotangents} {
  %loss, %dv, %dw = train.accumulate (%x = %xs) : (tensor<1x4x4xf32>) -> (!t, !t, !t) {
    %n = tx.exp %x {train.layer = #train.layer<0 of 1>} : (!t) -> !t
    %u = tx.matmul %n, %w {train.layer = #train.layer<0 of 1>} : (!t, !t) -> !t
    %a = tx.tanh %u {train.layer = #train.layer<0 of 1>} : (!t) -> !t
    %y = tx.matmul %a, %v {train.layer = #train.layer<0 of 1>} : (!t, !t) -> !t
    %l = tx.neg %y : (!t) -> !t loc("head")
    train.yield %l : !t saves %n, %u, %a, %l : !t, !t, !t, !t
  } backward (%x1, %n1, %u1, %a1, %dy) {
    %0 = tx.matmul_tn %a1, %dy {train.backward, train.layer = #train.layer<0 of 1>} : (!t, !t) -> !t
    %da = tx.matmul_nt %dy, %v {train.backward, train.layer = #train.layer<0 of 1>} : (!t, !t) -> !t
    %du = tx.mul %u1, %da {train.backward, train.layer = #train.layer<0 of 1>} : (!t, !t) -> !t
    %1 = tx.matmul_tn %n1, %du {train.backward, train.layer = #train.layer<0 of 1>} : (!t, !t) -> !t
    train.yield %0, %1 : !t, !t
  }
  return %loss, %dv, %dw : !t, !t, !t
}
