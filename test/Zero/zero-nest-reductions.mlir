// RUN: partita-opt %s --zero-nest-reductions | FileCheck %s

!all = tensor<4x6xf32, #par.place<[4, 6], partial [cp, dp, tp]>>
!rest = tensor<4x6xf32, #par.place<[4, 6], partial [cp, tp]>>
!cp = tensor<4x6xf32, #par.place<[4, 6], partial [cp]>>
#k = #par.cause<parameter "k" in "" of "tx.matmul" "node" layer 0 of 2>
module attributes {par.mesh = #par.mesh<dp = 4, cp = 2, tp = 2>} {
  // The nearest ranks scatter, the others sum shards, in the order in which they did. 24 elements: 12 each of the two scattered, 2 (3/4) 12
  // of the four, and 12 gathered.
  // CHECK-LABEL: func @example
  // CHECK-NEXT: %[[SHARD:.*]] = zero.reduce_scatter %arg0 over "cp" because "gradient" {par.causes = [#{{.*}}]} : tensor<4x6xf32, #par.place<[4, 6], partial [cp, dp]>> -> tensor<12xf32, #par.place<[4, 6], partial [dp], flat [cp]>>
  // CHECK-NEXT: %[[SUM:.*]] = par.all_reduce %[[SHARD]] over "dp" because "gradient" {par.causes = [#{{.*}}]} : tensor<12xf32, #par.place<[4, 6], partial [dp], flat [cp]>> -> tensor<12xf32, #par.place<[4, 6], flat [cp]>>
  // CHECK-NEXT: %[[FULL:.*]] = zero.gather %[[SUM]] over "cp" because "gradient" {par.causes = [#{{.*}}]} : tensor<12xf32, #par.place<[4, 6], flat [cp]>> -> tensor<4x6xf32>
  // CHECK-NEXT: return %[[FULL]]
  func.func @example(%dw: tensor<4x6xf32, #par.place<[4, 6], partial [cp, dp]>>) -> tensor<4x6xf32> attributes {par.no_cotangents} {
    %1 = par.all_reduce %dw over "dp" because "gradient" {par.causes = [#k]} : tensor<4x6xf32, #par.place<[4, 6], partial [cp, dp]>> -> !cp
    %g = par.all_reduce %1 over "cp" because "gradient" {par.causes = [#k]} : !cp -> tensor<4x6xf32>
    return %g : tensor<4x6xf32>
  }

  // A sum over tp, which splits the parameter's use and not the samples, is of the shard too.
  // CHECK-LABEL: func @tensor
  // CHECK-NEXT: zero.reduce_scatter %arg0 over "cp"
  // CHECK-NEXT: par.all_reduce %{{.*}} over "dp" {{.*}} -> tensor<12xf32
  // CHECK-NEXT: par.all_reduce %{{.*}} over "tp" {{.*}} -> tensor<12xf32
  // CHECK-NEXT: zero.gather %{{.*}} over "cp"
  // CHECK-NEXT: return
  func.func @tensor(%dw: !all) -> tensor<4x6xf32> attributes {par.no_cotangents} {
    %1 = par.all_reduce %dw over "dp" {par.causes = [#k]} : !all -> !rest
    %2 = par.all_reduce %1 over "tp" {par.causes = [#k]} : !rest -> !cp
    %g = par.all_reduce %2 over "cp" {par.causes = [#k]} : !cp -> tensor<4x6xf32>
    return %g : tensor<4x6xf32>
  }

  // Of one element: as a shard it would be padded to two.
  // CHECK-LABEL: func @small
  // CHECK-NOT: zero
  func.func @small(%dw: tensor<1xf32, #par.place<[1], partial [cp, dp]>>) -> tensor<1xf32> attributes {par.no_cotangents} {
    %1 = par.all_reduce %dw over "dp" {par.causes = [#k]} : tensor<1xf32, #par.place<[1], partial [cp, dp]>> -> tensor<1xf32, #par.place<[1], partial [cp]>>
    %g = par.all_reduce %1 over "cp" {par.causes = [#k]} : tensor<1xf32, #par.place<[1], partial [cp]>> -> tensor<1xf32>
    return %g : tensor<1xf32>
  }

  // What else reads the first sum needs it in full; an activation's sum is no parameter's.
  // CHECK-LABEL: func @others
  // CHECK-NOT: zero
  func.func @others(%dw: tensor<4x6xf32, #par.place<[4, 6], partial [cp, dp]>>) -> (!cp, tensor<4x6xf32>, tensor<4x6xf32>) attributes {par.no_cotangents} {
    %1 = par.all_reduce %dw over "dp" {par.causes = [#k]} : tensor<4x6xf32, #par.place<[4, 6], partial [cp, dp]>> -> !cp
    %g = par.all_reduce %1 over "cp" {par.causes = [#k]} : !cp -> tensor<4x6xf32>
    %2 = par.all_reduce %dw over "dp" {par.causes = [#par.cause<sum "k" in "" of "tx.matmul" "node" layer 0 of 2>]} : tensor<4x6xf32, #par.place<[4, 6], partial [cp, dp]>> -> !cp
    %h = par.all_reduce %2 over "cp" {par.causes = [#par.cause<sum "k" in "" of "tx.matmul" "node" layer 0 of 2>]} : !cp -> tensor<4x6xf32>
    return %1, %g, %h : !cp, tensor<4x6xf32>, tensor<4x6xf32>
  }
}
