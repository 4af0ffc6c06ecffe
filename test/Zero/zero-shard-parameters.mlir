// RUN: partita-opt %s --split-input-file --zero-shard-parameters | FileCheck %s
// RUN: partita-opt %s --split-input-file --zero-shard-parameters=keep=24 | FileCheck %s --check-prefix=KEEP
// RUN: partita-opt %s --split-input-file --zero-shard-parameters=stage=2 | FileCheck %s --check-prefix=BELOW
// RUN: partita-opt %s --split-input-file --zero-shard-parameters=sync-each=step | FileCheck %s --check-prefix=STEP
// RUN: partita-opt %s --split-input-file --zero-shard-parameters=strategy=full-shard | FileCheck %s
// RUN: not partita-opt %s --zero-shard-parameters="stage=2 strategy=full-shard" 2>&1 | FileCheck %s --check-prefix=STAGE
// STAGE: error: fsdp strategy full-shard is zero stage 3, the plan says stage 2; leave out one of the two
// RUN: not partita-opt %s --split-input-file --zero-shard-parameters=hpz=3 2>&1 | FileCheck %s --check-prefix=HPZ
// HPZ: error: hpz=3 expects a mesh with two axes that split the batch, the inner one of 3 ranks, as in dp=2,fsdp=3; this one is
// KEEP-NOT: flat
// BELOW-NOT: flat

module attributes {par.mesh = #par.mesh<dp = 2, tp = 2>} {
  train.parameter @w : tensor<4x6xf32>
  train.parameter @b : tensor<5xf32>

  // CHECK-LABEL: func @example
  // CHECK: %[[W:.*]] = train.read @w : tensor<12xf32, #par.place<[4, 6], flat [dp]>>
  // CHECK-NEXT: %[[G:.*]] = zero.gather %[[W]] over "dp" because "parameter" : tensor<12xf32, #par.place<[4, 6], flat [dp]>> -> tensor<4x6xf32, #par.place<[4, 6], replicated [dp]>>
  // CHECK-NEXT: tx.matmul %arg0, %[[G]]
  func.func @example(%x: tensor<2x4xf32, #par.place<[4 @dp, 4]>>) -> tensor<2x6xf32, #par.place<[4 @dp, 6]>> {
    %w = train.read @w : tensor<4x6xf32>
    %1 = par.f %w over "dp" : tensor<4x6xf32> -> tensor<4x6xf32, #par.place<[4, 6], replicated [dp]>>
    %y = tx.matmul %x, %1 : (tensor<2x4xf32, #par.place<[4 @dp, 4]>>, tensor<4x6xf32, #par.place<[4, 6], replicated [dp]>>) -> tensor<2x6xf32, #par.place<[4 @dp, 6]>>
    return %y : tensor<2x6xf32, #par.place<[4 @dp, 6]>>
  }

  // CHECK-LABEL: func @init
  // CHECK: train.initial_value @w : tensor<12xf32, #par.place<[4, 6], flat [dp]>>
  func.func @init() attributes {train.entry_point = #train.entry_point<init>} {
    %w = train.initial_value @w : tensor<4x6xf32>
    train.write @w, %w : tensor<4x6xf32>
    return
  }

  // Another axis's conjugate is of the shard; in a loop every micro-batch gathers, at its first use; 5 elements on 2 ranks.
  // CHECK-LABEL: func @loop
  // CHECK: %[[B:.*]] = train.read @b : tensor<3xf32, #par.place<[5], flat [dp]>>
  // CHECK-NEXT: %[[F:.*]] = par.f %[[B]] over "tp" : tensor<3xf32, #par.place<[5], flat [dp]>> -> tensor<3xf32, #par.place<[5], replicated [tp], flat [dp]>>
  // CHECK-NEXT: train.accumulate
  // CHECK: tx.neg
  // CHECK-NEXT: %[[G:.*]] = zero.gather %[[F]] over "dp" because "parameter" : tensor<3xf32, #par.place<[5], replicated [tp], flat [dp]>> -> tensor<5xf32, #par.place<[5], replicated [dp, tp]>>
  // CHECK-NEXT: tx.mul %{{.*}}, %[[G]]
  // CHECK-NEXT: tx.mul %{{.*}}, %[[G]]
  // Or all micro-batches together, in front of the loop.
  // STEP-LABEL: func @loop
  // STEP: %[[F:.*]] = par.f %{{.*}} over "tp" : tensor<3xf32
  // STEP-NEXT: %[[G:.*]] = zero.gather %[[F]] over "dp"
  // STEP-NEXT: train.accumulate
  // STEP-NOT: zero.gather
  // STEP: tx.mul %{{.*}}, %[[G]]
  func.func @loop(%x: tensor<2x5xf32, #par.place<[2, 5], replicated [dp, tp]>>) -> tensor<5xf32, #par.place<[5], replicated [dp, tp]>> {
    %b = train.read @b : tensor<5xf32>
    %t = par.f %b over "tp" : tensor<5xf32> -> tensor<5xf32, #par.place<[5], replicated [tp]>>
    %f = par.f %t over "dp" : tensor<5xf32, #par.place<[5], replicated [tp]>> -> tensor<5xf32, #par.place<[5], replicated [dp, tp]>>
    %s = train.accumulate (%one = %x) : (tensor<2x5xf32, #par.place<[2, 5], replicated [dp, tp]>>) -> tensor<5xf32, #par.place<[5], replicated [dp, tp]>> {
      %n = "tx.neg"(%one) : (tensor<5xf32, #par.place<[5], replicated [dp, tp]>>) -> tensor<5xf32, #par.place<[5], replicated [dp, tp]>>
      %y = "tx.mul"(%n, %f) : (tensor<5xf32, #par.place<[5], replicated [dp, tp]>>, tensor<5xf32, #par.place<[5], replicated [dp, tp]>>) -> tensor<5xf32, #par.place<[5], replicated [dp, tp]>>
      %z = "tx.mul"(%y, %f) : (tensor<5xf32, #par.place<[5], replicated [dp, tp]>>, tensor<5xf32, #par.place<[5], replicated [dp, tp]>>) -> tensor<5xf32, #par.place<[5], replicated [dp, tp]>>
      train.yield %z : tensor<5xf32, #par.place<[5], replicated [dp, tp]>>
    }
    return %s : tensor<5xf32, #par.place<[5], replicated [dp, tp]>>
  }
  // Gathers have the cause of the parameter's f in another role: of a function without f, too, and where stages share the parameter. One that
  // no op of the model has asked for says what it is of.
  // CHECK-LABEL: func @causes
  // CHECK: zero.gather {{.*}} {par.causes = [#par.cause<kept "k" in "" of "tx.matmul" "node" layer 0 of 2>]}
  // CHECK-LABEL: func @evaluation
  // CHECK: zero.gather {{.*}} {par.causes = [#par.cause<kept "k" in "" of "tx.matmul" "node" layer 1 of 2>]}
  // CHECK: zero.gather {{.*}} {par.causes = [#par.cause<kept "" in "" of "" "still" layer 1 of 2>]
  train.parameter @shared : tensor<4xf32>
  train.parameter @still : tensor<4xf32>
  func.func @causes() -> tensor<4xf32, #par.place<[4], replicated [dp]>> {
    %s = train.read @shared : tensor<4xf32>
    %1 = pipe.share %s on [0, 1] : tensor<4xf32>
    %2 = par.f %1 over "dp" {par.causes = [#par.cause<parameter "k" in "" of "tx.matmul" "node" layer 0 of 2>]} : tensor<4xf32> -> tensor<4xf32, #par.place<[4], replicated [dp]>>
    return %2 : tensor<4xf32, #par.place<[4], replicated [dp]>>
  }
  func.func @evaluation() -> tensor<4xf32> attributes {par.no_cotangents} {
    %s = train.read @shared : tensor<4xf32>
    %t = train.read @still : tensor<4xf32> loc("still")
    %y = tx.add %s, %t {train.layer = #train.layer<1 of 2>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

// Ranks of cp have the same parameters: those of dp, which are farther, gather the shards that they cut. 15 elements: 8 of the first rank of cp,
// of which the second of dp has 4.
module attributes {par.mesh = #par.mesh<dp = 2, cp = 2>} {
  train.parameter @w : tensor<3x5xf32>
  // CHECK-LABEL: func @nested
  // CHECK: %[[W:.*]] = train.read @w : tensor<4xf32, #par.place<[3, 5], flat [cp, dp]>>
  // CHECK-NEXT: %[[DP:.*]] = zero.gather %[[W]] over "dp" because "parameter" : {{.*}} -> tensor<8xf32, #par.place<[3, 5], replicated [dp], flat [cp]>>
  // CHECK-NEXT: %[[CP:.*]] = zero.gather %[[DP]] over "cp" because "parameter" : {{.*}} -> tensor<3x5xf32, #par.place<[3, 5], replicated [cp, dp]>>
  // CHECK-NEXT: tx.matmul %arg0, %[[CP]]
  func.func @nested(%x: tensor<2x3xf32, #par.place<[8 @dp @cp, 3]>>) -> tensor<2x5xf32, #par.place<[8 @dp @cp, 5]>> {
    %w = train.read @w : tensor<3x5xf32>
    %1 = par.f %w over "dp" : tensor<3x5xf32> -> tensor<3x5xf32, #par.place<[3, 5], replicated [dp]>>
    %2 = par.f %1 over "cp" : tensor<3x5xf32, #par.place<[3, 5], replicated [dp]>> -> tensor<3x5xf32, #par.place<[3, 5], replicated [cp, dp]>>
    %y = tx.matmul %x, %2 : (tensor<2x3xf32, #par.place<[8 @dp @cp, 3]>>, tensor<3x5xf32, #par.place<[3, 5], replicated [cp, dp]>>) -> tensor<2x5xf32, #par.place<[8 @dp @cp, 5]>>
    return %y : tensor<2x5xf32, #par.place<[8 @dp @cp, 5]>>
  }
}
