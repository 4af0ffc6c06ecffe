// RUN: partita-opt %s --zero-prefetch-parameters | FileCheck %s
// RUN: partita-opt %s --zero-prefetch-parameters=ahead-bytes=48 | FileCheck %s --check-prefix=AHEAD
// RUN: partita-opt %s --zero-prefetch-parameters=bucket-bytes=16 | FileCheck %s --check-prefix=SMALL
// RUN: partita-opt %s --zero-prefetch-parameters=always=true | FileCheck %s --check-prefix=ALWAYS
// RUN: not partita-opt %s --zero-prefetch-parameters=ahead-bytes=-1 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: error: bucket-bytes=25000000 ahead-bytes=-1, expected none below 0

!shard = tensor<2xf32, #par.place<[4], flat [dp]>>
module attributes {par.mesh = #par.mesh<dp = 2>} {
  train.parameter @a : tensor<4xf32>
  train.parameter @b : tensor<4xf32>
  train.parameter @c : tensor<4xf32>
  train.parameter @d : tensor<4xf32>

  // The second layer's two parameters are one bucket, gathered before the first layer; the third's before the second; what
  // reads a shard moves with it. 16 bytes each.
  // CHECK-LABEL: func @example
  // CHECK: %[[A:.*]] = zero.gather %{{[^,]*}} over "dp" because "parameter"
  // CHECK: %[[BC:.*]]:2 = zero.gather %{{.*}}, %{{.*}} over "dp" because "parameter"
  // CHECK-NEXT: %[[X:.*]] = tx.mul %arg0, %[[A]]
  // CHECK: train.read @d
  // CHECK-NEXT: %[[D:.*]] = zero.gather
  // CHECK-NEXT: tx.mul %[[X]], %[[BC]]#0
  // CHECK-NEXT: tx.mul %{{.*}}, %[[BC]]#1
  // CHECK-NEXT: tx.mul %{{.*}}, %[[D]]
  // All three layers' parameters fit into the bound of 64 bytes less the first's.
  // AHEAD-LABEL: func @example
  // AHEAD: zero.gather
  // AHEAD: zero.gather %{{.*}}, %{{.*}} over "dp"
  // AHEAD-NEXT: tx.mul
  // AHEAD: zero.gather
  // AHEAD-NEXT: tx.mul
  // A bucket of one parameter.
  // SMALL-LABEL: func @example
  // SMALL-NOT: zero.gather %{{.*}}, %
  func.func @example(%x: tensor<4xf32>) -> tensor<4xf32> attributes {par.no_cotangents} {
    %a = train.read @a : !shard
    %b = train.read @b : !shard
    %c = train.read @c : !shard
    %1 = zero.gather %a over "dp" because "parameter" : !shard -> tensor<4xf32>
    %y = tx.mul %x, %1 {train.layer = #train.layer<0 of 3>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2 = zero.gather %b over "dp" because "parameter" : !shard -> tensor<4xf32>
    %z = tx.mul %y, %2 {train.layer = #train.layer<1 of 3>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %3 = zero.gather %c over "dp" because "parameter" : !shard -> tensor<4xf32>
    %u = tx.mul %z, %3 {train.layer = #train.layer<1 of 3>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %d = train.read @d : !shard
    %4 = zero.gather %d over "dp" because "parameter" : !shard -> tensor<4xf32>
    %v = tx.mul %u, %4 {train.layer = #train.layer<2 of 3>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %v : tensor<4xf32>
  }

  // The backward pass of the second layer needs @b again, to be gathered before the first use of what stands before it, the third
  // layer's: the forward pass still uses it there. @a it does not: that is gathered again.
  // CHECK-LABEL: func @alive
  // CHECK-COUNT-3: zero.gather
  // CHECK: zero.gather %{{.*}} over "dp" again
  // CHECK-NOT: zero.gather
  // CHECK: return
  // ALWAYS-LABEL: func @alive
  // ALWAYS-COUNT-2: zero.gather %{{.*}} over "dp" again
  func.func @alive(%x: tensor<4xf32>) -> tensor<4xf32> attributes {par.no_cotangents} {
    %a = train.read @a : !shard
    %b = train.read @b : !shard
    %c = train.read @c : !shard
    %1 = zero.gather %a over "dp" because "parameter" : !shard -> tensor<4xf32>
    %y = tx.mul %x, %1 {train.layer = #train.layer<0 of 3>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2 = zero.gather %b over "dp" because "parameter" : !shard -> tensor<4xf32>
    %z = tx.mul %y, %2 {train.layer = #train.layer<1 of 3>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %3 = zero.gather %c over "dp" because "parameter" : !shard -> tensor<4xf32>
    %u = tx.mul %z, %3 {train.layer = #train.layer<2 of 3>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %v = tx.mul %u, %2 {train.layer = #train.layer<2 of 3>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %4 = zero.gather %b over "dp" again because "parameter" : !shard -> tensor<4xf32>
    %w = tx.mul %v, %4 {train.backward, train.layer = #train.layer<1 of 3>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %5 = zero.gather %a over "dp" again because "parameter" : !shard -> tensor<4xf32>
    %r = tx.mul %w, %5 {train.backward, train.layer = #train.layer<0 of 3>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %r : tensor<4xf32>
  }
}
