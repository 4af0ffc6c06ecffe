// RUN: partita-opt %s --recompute --split-input-file | FileCheck %s

// A gated MLP: the backward pass reads the gate anyway, so it reads the gate again instead of silu(gate), which is not saved.
// CHECK-LABEL: func @gated
// CHECK: %[[G:.*]] = tx.exp %{{.*}}
// CHECK-NEXT: %[[U:.*]] = tx.neg %{{.*}}
// CHECK-NEXT: %[[A:.*]] = tx.silu %[[G]]
// CHECK-NEXT: %[[L:.*]] = tx.mul %[[A]], %[[U]]
// CHECK-NEXT: train.yield %[[L]] : tensor<4x4xf32> saves %[[G]], %[[U]], %[[L]] :
// CHECK-NEXT: } backward (%{{.*}}, %[[G1:.*]], %[[U1:.*]], %[[DY:.*]]) {
// CHECK-NEXT: %[[B:.*]] = train.barrier %[[G1]]
// CHECK-NEXT: %[[A2:.*]] = tx.silu %[[B]]
// CHECK-NEXT: tx.mul %[[A2]], %[[DY]]
!t = tensor<4x4xf32>
#layer = #train.layer<0 of 1>
func.func @gated(%xs: tensor<1x4x4xf32>) -> (!t, !t, !t) attributes {par.no_cotangents} {
  %loss, %du, %dg = train.accumulate (%x = %xs) : (tensor<1x4x4xf32>) -> (!t, !t, !t) {
    %g = tx.exp %x {train.layer = #layer} : (!t) -> !t
    %u = tx.neg %x {train.layer = #layer} : (!t) -> !t
    %a = tx.silu %g {train.layer = #layer} : (!t) -> !t
    %l = tx.mul %a, %u {train.layer = #layer} : (!t, !t) -> !t
    train.yield %l : !t saves %g, %u, %a, %l : !t, !t, !t, !t
  } backward (%x1, %g1, %u1, %a1, %dy) {
    %du1 = tx.mul %a1, %dy {train.backward, train.layer = #layer} : (!t, !t) -> !t
    %da = tx.mul %u1, %dy {train.backward, train.layer = #layer} : (!t, !t) -> !t
    %dg1 = tx.mul %g1, %da {train.backward, train.layer = #layer} : (!t, !t) -> !t
    train.yield %du1, %dg1 : !t, !t
  }
  return %loss, %du, %dg : !t, !t, !t
}

// -----

// CHECK-LABEL: func @costs
// CHECK-NOT: train.barrier
!t = tensor<4x4xf32>
#layer = #train.layer<0 of 1>
func.func @costs(%xs: tensor<1x4x4xf32>) -> (!t, !t, !t, !t) attributes {par.no_cotangents} {
  %loss, %a, %b, %c = train.accumulate (%x = %xs) : (tensor<1x4x4xf32>) -> (!t, !t, !t, !t) {
    %g = tx.exp %x {train.layer = #layer} : (!t) -> !t
    %u = tx.neg %x {train.layer = #layer} : (!t) -> !t
    %read = tx.silu %g {train.layer = #layer} : (!t) -> !t
    %two = tx.mul %g, %u {train.layer = #layer} : (!t, !t) -> !t
    %unsaved = tx.tanh %two {train.layer = #layer} : (!t) -> !t
    %deep = tx.exp %unsaved {train.layer = #layer} : (!t) -> !t
    %l = tx.add %read, %deep {train.layer = #layer} : (!t, !t) -> !t
    train.yield %l : !t saves %g, %u, %read, %two, %deep, %l : !t, !t, !t, !t, !t, !t
  } backward (%x1, %g1, %u1, %read1, %two1, %deep1, %dy) {
    // A matmul reads it; two values would be read instead of one; what it is computed from is not saved.
    %m = tx.matmul %read1, %dy {train.backward, train.layer = #layer} : (!t, !t) -> !t
    %n = tx.mul %two1, %m {train.backward, train.layer = #layer} : (!t, !t) -> !t
    %o = tx.mul %deep1, %n {train.backward, train.layer = #layer} : (!t, !t) -> !t
    %p = tx.mul %g1, %u1 {train.backward, train.layer = #layer} : (!t, !t) -> !t
    train.yield %n, %o, %p : !t, !t, !t
  }
  return %loss, %a, %b, %c : !t, !t, !t, !t
}
