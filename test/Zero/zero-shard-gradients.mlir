// RUN: partita-opt %s --split-input-file --zero-shard-gradients | FileCheck %s
// RUN: partita-opt %s --split-input-file --zero-shard-gradients=stage=1 | FileCheck %s --check-prefix=BELOW
// RUN: partita-opt %s --split-input-file --zero-shard-gradients=sync-each=step | FileCheck %s --check-prefix=BELOW

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

// -----

// Once per axis.
!both = tensor<2x3xf32, #par.place<[2, 3], partial [cp, dp]>>
!one = tensor<3xf32, #par.place<[2, 3], partial [dp], flat [cp]>>
!nested = tensor<2xf32, #par.place<[2, 3], flat [cp, dp]>>
module attributes {par.mesh = #par.mesh<dp = 2, cp = 2>} {
  // CHECK-LABEL: func @nested
  // CHECK: %[[G:.*]] = train.accumulate {{.*}} -> tensor<2xf32, #par.place<[2, 3], flat [cp, dp]>>
  // CHECK: %[[CP:.*]] = zero.reduce_scatter %{{.*}} over "cp"
  // CHECK-NEXT: %[[DP:.*]] = zero.reduce_scatter %[[CP]] over "dp"
  // CHECK-NEXT: train.yield %[[DP]]
  // CHECK: return %[[G]]
  func.func @nested(%batches: tensor<4x2x3xf32, #par.place<[4, 2, 3], partial [cp, dp]>>) -> !nested attributes {par.no_cotangents} {
    %sum = train.accumulate (%x = %batches) : (tensor<4x2x3xf32, #par.place<[4, 2, 3], partial [cp, dp]>>) -> !both {
      train.yield %x : !both
    }
    %1 = zero.reduce_scatter %sum over "cp" because "gradient" : !both -> !one
    %g = zero.reduce_scatter %1 over "dp" because "gradient" : !one -> !nested
    return %g : !nested
  }
}
