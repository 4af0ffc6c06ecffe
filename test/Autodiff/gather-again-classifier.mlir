// RUN: partita-opt %s --gather-again | FileCheck %s
// RUN: partita-opt %s --gather-again=always=true | FileCheck %s --check-prefix=ALWAYS
// RUN: partita-opt %s --gather-again="keep=q always=true" | FileCheck %s --check-prefix=KEEP

// The weights with which the forward pass ends and the backward pass begins are gathered once: no other parameter is needed between
// the two uses, so a second gather would make room for nothing.
// CHECK-LABEL: func.func @classifier
// CHECK: %[[Q:.*]] = zero.gather %{{.*}} over "tp" :
// CHECK: %[[R:.*]] = zero.gather %{{.*}} over "tp" :
// CHECK: train.yield %[[Z:.*]] : tensor<8x6xf32> saves %[[Z]], %[[R]] :
// CHECK-NEXT: } backward (%{{.*}}, %[[Z1:.*]], %[[R1:.*]]) {
// CHECK-NEXT: tx.matmul_nt %[[Z1]], %[[R1]]
// CHECK-NEXT: %[[AGAIN:.*]] = zero.gather %{{.*}} over "tp" again
// CHECK-NEXT: tx.matmul_nt %{{.*}}, %[[AGAIN]]
// CHECK-NOT: zero.gather
// ALWAYS: func.func @classifier
// ALWAYS-COUNT-2: zero.gather {{.*}} over "tp" again
// What `keep` names is saved for the backward pass instead.
// KEEP: func.func @classifier
// KEEP: %[[Q:.*]] = zero.gather
// KEEP: saves {{.*}}, %[[Q]] :
// KEEP-COUNT-1: zero.gather {{.*}} over "tp" again
// KEEP-NOT: zero.gather
module attributes {par.mesh = #par.mesh<tp = 2>} {
train.parameter @q : tensor<4x6xf32>
train.parameter @r : tensor<6x6xf32>
func.func @classifier(%xs: tensor<1x8x4xf32>) -> (tensor<8x6xf32>, tensor<8x4xf32>) attributes {par.no_cotangents} {
  %q = train.read @q : tensor<12xf32, #par.place<[4, 6], flat [tp]>>
  %r = train.read @r : tensor<18xf32, #par.place<[6, 6], flat [tp]>>
  %s:2 = train.accumulate (%x = %xs) : (tensor<1x8x4xf32>) -> (tensor<8x6xf32>, tensor<8x4xf32>) {
    %qw = zero.gather %q over "tp" : tensor<12xf32, #par.place<[4, 6], flat [tp]>> -> tensor<4x6xf32>
    %rw = zero.gather %r over "tp" : tensor<18xf32, #par.place<[6, 6], flat [tp]>> -> tensor<6x6xf32>
    %h = tx.matmul %x, %qw : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %z = tx.matmul %h, %rw : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
    train.yield %z : tensor<8x6xf32> saves %z, %rw, %qw : tensor<8x6xf32>, tensor<6x6xf32>, tensor<4x6xf32>
  } backward (%x1, %z1, %rw1, %qw1) {
    %dh = tx.matmul_nt %z1, %rw1 {train.backward} : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
    %dx = tx.matmul_nt %dh, %qw1 {train.backward} : (tensor<8x6xf32>, tensor<4x6xf32>) -> tensor<8x4xf32>
    train.yield %dx : tensor<8x4xf32>
  }
  return %s#0, %s#1 : tensor<8x6xf32>, tensor<8x4xf32>
}
}
