// RUN: partita-opt %s --reduce-in-last-slot | FileCheck %s
// RUN: partita-opt %s --reduce-in-last-slot | partita-opt | FileCheck %s

!p = tensor<8xf32, #par.place<[8], partial [dp]>>
!ps = tensor<4x8xf32, #par.place<[4, 8], partial [dp]>>
!ph = tensor<8xbf16, #par.place<[8], partial [dp]>>
!phs = tensor<4x8xbf16, #par.place<[4, 8], partial [dp]>>

// The backward pass adds up what the loop added after it, and reduces the sum when it runs for the last time.
// CHECK-LABEL: func.func @example
// CHECK: %[[S:.*]]:2, %[[L:.*]] = train.accumulate (%{{.*}} = %arg0, %{{.*}} = %arg1) : (tensor<4x8xf32>, {{.*}}) -> (tensor<8xf32>, {{.*}}, tensor<8xf32>) {
// CHECK: } backward (%{{.*}}, %[[E:.*]], %[[Y:.*]]) onto (%[[SO_FAR:.*]] = 1) {
// CHECK-NEXT: %[[G:.*]] = tx.mul %[[E]], %[[Y]]
// CHECK-NEXT: %[[W:.*]] = tx.add %[[SO_FAR]], %[[G]]
// CHECK-NEXT: %[[R:.*]] = par.all_reduce %[[W]] over "dp" because "gradient" {train.backward, train.last}
// CHECK-NEXT: train.yield %[[W]] : {{.*}} last %[[R]] : tensor<8xf32>
// CHECK-NEXT: } {order =
// CHECK-NEXT: return %[[S]]#0, %[[L]]
func.func @example(%x: tensor<4x8xf32>, %c: !ps) -> (tensor<8xf32>, tensor<8xf32>) attributes {par.no_cotangents} {
  %sum, %dw = train.accumulate (%i = %x, %d = %c) : (tensor<4x8xf32>, !ps) -> (tensor<8xf32>, !p) {
    %y = tx.exp %i : (tensor<8xf32>) -> tensor<8xf32>
    train.yield %y : tensor<8xf32> saves %y : tensor<8xf32>
  } backward (%j, %e, %y_saved) {
    %g = tx.mul %e, %y_saved : (!p, tensor<8xf32>) -> !p
    train.yield %g : !p
  } {order = #train.order<1 x (forward 0), 3 x (forward 1, backward 0), 1 x (backward 3)>}
  %r = par.all_reduce %dw over "dp" because "gradient" {train.backward} : !p -> tensor<8xf32>
  return %sum, %r : tensor<8xf32>, tensor<8xf32>
}

// A sum in 32 bits of gradients in 16 is added up in one kernel, and the cast in front of its reduction moves along: the backward pass has it then.
// CHECK-LABEL: func.func @widened
// CHECK: } backward (%[[E:.*]]) onto (%[[SO_FAR:.*]] = 0) {
// CHECK-NEXT: %[[W:.*]] = tx.fusion (%[[A:.*]] = %[[SO_FAR]], %[[B:.*]] = %[[E]])
// CHECK-NEXT: %[[WIDE:.*]] = tx.cast %[[B]]
// CHECK-NEXT: %[[SUM:.*]] = tx.add %[[A]], %[[WIDE]]
// CHECK-NEXT: tx.fused %[[SUM]]
// CHECK-NEXT: }
// CHECK-NEXT: %[[H:.*]] = tx.cast %[[W]] {train.backward, train.last}
// CHECK-NEXT: %[[R:.*]] = par.all_reduce %[[H]] over "dp" {train.backward, train.last}
// CHECK-NEXT: train.yield %[[W]] : {{.*}} last %[[R]] : tensor<8xbf16>
func.func @widened(%c: !phs) -> tensor<8xbf16> attributes {par.no_cotangents} {
  %dw = train.accumulate (%d = %c) : (!phs) -> !p {
    train.yield
  } backward (%e) {
    train.yield %e : !ph
  } {order = #train.order<4 x (forward 0, backward 0)>}
  %h = tx.cast %dw : !p -> !ph
  %r = par.all_reduce %h over "dp" {train.backward} : !ph -> tensor<8xbf16>
  return %r : tensor<8xbf16>
}

// What stays behind: a loss; what needs sums of two passes; a sum that something else reads; what needs another reduction.
// CHECK-LABEL: func.func @behind
// CHECK: %[[S:.*]]:4 = train.accumulate
// CHECK-NOT: train.last
// CHECK: par.all_reduce %[[S]]#0 over "dp" because "loss"
// CHECK: %[[BOTH:.*]] = tx.add %[[S]]#1, %[[S]]#3
// CHECK-NEXT: par.all_reduce %[[BOTH]]
// CHECK-NEXT: %[[R:.*]] = par.all_reduce %[[S]]#2
// CHECK-NEXT: tx.add %[[S]]#2, %[[S]]#2
func.func @behind(%c: !ps) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, !p) attributes {par.no_cotangents} {
  %loss, %first, %read, %second = train.accumulate (%d = %c) : (!ps) -> (!p, !p, !p, !p) {
    train.yield %d : !p
  } backward (%e) {
    train.yield %e, %e : !p, !p
  } weights (%f) {
    train.yield %f : !p
  } {order = #train.order<4 x (forward 0, backward 0, weights 0)>}
  %0 = par.all_reduce %loss over "dp" because "loss" : !p -> tensor<8xf32>
  %both = tx.add %first, %second : (!p, !p) -> !p
  %1 = par.all_reduce %both over "dp" {train.backward} : !p -> tensor<8xf32>
  %2 = par.all_reduce %read over "dp" {train.backward} : !p -> tensor<8xf32>
  %3 = tx.add %read, %read : (!p, !p) -> !p
  return %0, %1, %2, %3 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, !p
}
