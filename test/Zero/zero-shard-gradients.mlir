// RUN: partita-opt %s --zero-shard-gradients | FileCheck %s
// RUN: partita-opt %s --zero-shard-gradients=stage=1 | FileCheck %s --check-prefix=BELOW
// RUN: partita-opt %s --zero-shard-gradients=sync-each=step | FileCheck %s --check-prefix=BELOW

!p = tensor<2x3xf32, #par.place<[2, 3], partial [dp]>>
!shard = tensor<3xf32, #par.place<[2, 3], flat [dp]>>
module attributes {par.mesh = #par.mesh<dp = 2>} {
  // CHECK-LABEL: func @example
  // CHECK: %[[G:.*]] = train.accumulate {{.*}} -> tensor<3xf32, #par.place<[2, 3], flat [dp]>>
  // CHECK: %[[N:.*]] = tx.neg
  // CHECK-NEXT: %[[SHARD:.*]] = zero.reduce_scatter %[[N]] over "dp" because "gradient"
  // CHECK-NEXT: train.yield %[[SHARD]]
  // CHECK: return %[[G]]
  // BELOW-LABEL: func @example
  // BELOW: train.yield
  // BELOW: zero.reduce_scatter
  func.func @example(%batches: tensor<4x2x3xf32, #par.place<[4, 2, 3], partial [dp]>>) -> !shard attributes {par.no_cotangents} {
    %sum = train.accumulate (%x = %batches) : (tensor<4x2x3xf32, #par.place<[4, 2, 3], partial [dp]>>) -> !p {
      %part = tx.neg %x : (!p) -> !p
      train.yield %part : !p
    }
    %g = zero.reduce_scatter %sum over "dp" because "gradient" : !p -> !shard
    return %g : !shard
  }

  // What else reads the sum needs it in full.
  // CHECK-LABEL: func @used
  // CHECK: train.yield
  // CHECK: zero.reduce_scatter
  func.func @used(%batches: tensor<4x2x3xf32, #par.place<[4, 2, 3], partial [dp]>>) -> (!shard, !p) attributes {par.no_cotangents} {
    %sum = train.accumulate (%x = %batches) : (tensor<4x2x3xf32, #par.place<[4, 2, 3], partial [dp]>>) -> !p {
      train.yield %x : !p
    }
    %g = zero.reduce_scatter %sum over "dp" : !p -> !shard
    return %g, %sum : !shard, !p
  }
}
