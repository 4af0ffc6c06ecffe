// RUN: partita-opt %s --gather-again="always=true" | FileCheck %s

// Between groups (dp) the backward pass gathers nothing: what the forward pass's gather left, a shard within the group (fsdp), is saved.
// CHECK-LABEL: func.func @secondary
// CHECK: %[[COPY:.*]] = zero.gather %{{.*}} over "dp" :
// CHECK-NEXT: zero.gather %[[COPY]] over "fsdp" :
// CHECK: train.yield %[[Z:.*]] : tensor<8x6xf32> saves {{.*}}%[[COPY]] :
// CHECK-NEXT: } backward ({{.*}}, %[[COPY1:.*]]) {
// CHECK-NEXT: %[[AGAIN:.*]] = zero.gather %[[COPY1]] over "fsdp" again
// CHECK-NEXT: tx.matmul_nt %{{.*}}, %[[AGAIN]]
// CHECK-NOT: zero.gather
// Further in in the mesh, cp splits the sequences, and not the batch: its groups keep no copy.
// CHECK-LABEL: func.func @context
// CHECK: } backward
// CHECK-NEXT: %[[INNER:.*]] = zero.gather %{{.*}} over "dp" again
// CHECK-NEXT: zero.gather %[[INNER]] over "cp" again
module attributes {par.mesh = #par.mesh<dp = 2, fsdp = 2, cp = 2>} {
train.parameter @q : tensor<4x6xf32>
func.func @secondary(%xs: tensor<1x8x4xf32>) -> (tensor<8x6xf32>, tensor<8x4xf32>) attributes {par.no_cotangents} {
  %q = train.read @q : tensor<6xf32, #par.place<[4, 6], flat [fsdp, dp]>>
  %s:2 = train.accumulate (%x = %xs) : (tensor<1x8x4xf32>) -> (tensor<8x6xf32>, tensor<8x4xf32>) {
    %qc = zero.gather %q over "dp" : tensor<6xf32, #par.place<[4, 6], flat [fsdp, dp]>> -> tensor<12xf32, #par.place<[4, 6], flat [fsdp]>>
    %qw = zero.gather %qc over "fsdp" : tensor<12xf32, #par.place<[4, 6], flat [fsdp]>> -> tensor<4x6xf32>
    %z = tx.matmul %x, %qw : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    train.yield %z : tensor<8x6xf32> saves %z, %qw : tensor<8x6xf32>, tensor<4x6xf32>
  } backward (%x1, %z1, %qw1) {
    %dx = tx.matmul_nt %z1, %qw1 {train.backward} : (tensor<8x6xf32>, tensor<4x6xf32>) -> tensor<8x4xf32>
    train.yield %dx : tensor<8x4xf32>
  }
  return %s#0, %s#1 : tensor<8x6xf32>, tensor<8x4xf32>
}
func.func @context(%xs: tensor<1x8x4xf32>) -> (tensor<8x6xf32>, tensor<8x4xf32>) attributes {par.no_cotangents} {
  %q = train.read @q : tensor<6xf32, #par.place<[4, 6], flat [cp, dp]>>
  %s:2 = train.accumulate (%x = %xs) : (tensor<1x8x4xf32>) -> (tensor<8x6xf32>, tensor<8x4xf32>) {
    %qc = zero.gather %q over "dp" : tensor<6xf32, #par.place<[4, 6], flat [cp, dp]>> -> tensor<12xf32, #par.place<[4, 6], flat [cp]>>
    %qw = zero.gather %qc over "cp" : tensor<12xf32, #par.place<[4, 6], flat [cp]>> -> tensor<4x6xf32>
    %z = tx.matmul %x, %qw : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    train.yield %z : tensor<8x6xf32> saves %z, %qw : tensor<8x6xf32>, tensor<4x6xf32>
  } backward (%x1, %z1, %qw1) {
    %dx = tx.matmul_nt %z1, %qw1 {train.backward} : (tensor<8x6xf32>, tensor<4x6xf32>) -> tensor<8x4xf32>
    train.yield %dx : tensor<8x4xf32>
  }
  return %s#0, %s#1 : tensor<8x6xf32>, tensor<8x4xf32>
}
}
