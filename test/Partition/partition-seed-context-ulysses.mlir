// Heads are exchanged within a ring: what cp splits, ulysses splits again, each chunk of it.
// RUN: partita-opt %s --split-input-file --partition-seed-context | FileCheck %s
// RUN: not partita-opt %s --split-input-file --partition-seed-context=how=all-to-all 2>&1 | FileCheck %s --check-prefix=ALL
// ALL: error: --context-parallel all-to-all exchanges heads over all ranks that share a sequence, of which mesh axis 'ulysses' has a part; take ring, which does so over ulysses alone, or put all of these ranks on one axis

// CHECK-LABEL: func.func @both
// CHECK-SAME: par.split = #par.place<[2, 2 x 4 @cp mirrored @ulysses]>
// CHECK: %[[OWN:.*]] = par.narrow %{{.*}} over "cp" along 0 in 2 blocks mirrored
// CHECK: par.narrow %[[OWN]] over "ulysses" along 0 in 2 blocks :
// CHECK-COUNT-3: par.all_to_all %{{.*}} over "ulysses" from 1 to 2 of 2 runs
// CHECK: %[[OUT:.*]], %{{.*}} = tx.attention {{.*}} ring "cp"
// CHECK: par.all_to_all %[[OUT]] over "ulysses" from 2 to 1 of 2 runs
module attributes {par.mesh = #par.mesh<cp = 2, ulysses = 2>} {
  train.parameter @wte : tensor<16x8xf32>
  train.parameter @wpe : tensor<8x8xf32>
  func.func @both(%ids: tensor<2x8xi64> {train.batch = 0}) -> tensor<2x8x2x4xf32> {
    %wte = train.read @wte : tensor<16x8xf32>
    %wpe = train.read @wpe : tensor<8x8xf32>
    %e = tx.embedding %wte, %ids : (tensor<16x8xf32>, tensor<2x8xi64>) -> tensor<2x8x8xf32>
    %p = tx.broadcast %wpe : tensor<8x8xf32> -> tensor<2x8x8xf32>
    %x = tx.add %e, %p : (tensor<2x8x8xf32>, tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
    %q = tx.reshape %x : tensor<2x8x8xf32> -> tensor<2x8x2x4xf32>
    %out, %lse = tx.attention %q, %q, %q scale 0.5 causal
      : (tensor<2x8x2x4xf32>, tensor<2x8x2x4xf32>, tensor<2x8x2x4xf32>) -> (tensor<2x8x2x4xf32>, tensor<2x2x8xf32>)
    return %out : tensor<2x8x2x4xf32>
  }
}

// -----

// Of what has no heads to deal out, ranks of an exchange need the same: the one key head is gathered, and the rows of a bias are split over cp alone;
// before, each rank takes those of its heads.
// CHECK-LABEL: func.func @shared
// CHECK: %[[HEADS:.*]] = par.narrow %{{.*}} over "ulysses" along 1 :
// CHECK: %[[K:.*]] = par.all_gather %{{.*}} over "ulysses" along 1 :
// CHECK-NOT: par.all_gather
// CHECK: %[[BIAS:.*]] = par.narrow %[[HEADS]] over "cp" along 2 :
// CHECK: %[[Q:.*]] = par.all_to_all %{{.*}} over "ulysses" from 1 to 2 :
// CHECK: tx.attention %[[Q]], %[[K]], %[[K]] bias %[[BIAS]] scale {{.*}} ring "cp"
module attributes {par.mesh = #par.mesh<cp = 2, ulysses = 2>} {
  train.parameter @wte : tensor<16x8xf32>
  train.parameter @bias : tensor<1x2x8x8xf32>
  func.func @shared(%ids: tensor<2x8xi64> {train.batch = 0}) -> tensor<2x8x2x4xf32> {
    %wte = train.read @wte : tensor<16x8xf32>
    %bias = train.read @bias : tensor<1x2x8x8xf32>
    %x = tx.embedding %wte, %ids : (tensor<16x8xf32>, tensor<2x8xi64>) -> tensor<2x8x8xf32>
    %q = tx.reshape %x : tensor<2x8x8xf32> -> tensor<2x8x2x4xf32>
    %half = tx.slice %x [0, 0, 0] by [1, 1, 1] : tensor<2x8x8xf32> -> tensor<2x8x4xf32>
    %k = tx.reshape %half : tensor<2x8x4xf32> -> tensor<2x8x1x4xf32>
    %out, %lse = tx.attention %q, %k, %k bias %bias scale 0.5
      : (tensor<2x8x2x4xf32>, tensor<2x8x1x4xf32>, tensor<2x8x1x4xf32>, tensor<1x2x8x8xf32>) -> (tensor<2x8x2x4xf32>, tensor<2x2x8xf32>)
    return %out : tensor<2x8x2x4xf32>
  }
}

// -----

// Three key heads for six query heads and two ranks: each is repeated once, where it is.
// CHECK-LABEL: func.func @repeated
// CHECK: %[[APART:.*]] = tx.reshape %{{.*}} : tensor<2x8x3x4xf32> -> tensor<2x8x3x1x4xf32>
// CHECK: %[[TWICE:.*]] = tx.broadcast %[[APART]] : tensor<2x8x3x1x4xf32> -> tensor<2x8x3x2x4xf32>
// CHECK: %[[SIX:.*]] = tx.reshape %[[TWICE]] : tensor<2x8x3x2x4xf32> -> tensor<2x8x6x4xf32>
// CHECK: par.all_to_all %[[SIX]] over "ulysses" from 1 to 2 :
module attributes {par.mesh = #par.mesh<cp = 2, ulysses = 2>} {
  train.parameter @wte : tensor<16x24xf32>
  func.func @repeated(%ids: tensor<2x8xi64> {train.batch = 0}) -> tensor<2x8x6x4xf32> {
    %wte = train.read @wte : tensor<16x24xf32>
    %x = tx.embedding %wte, %ids : (tensor<16x24xf32>, tensor<2x8xi64>) -> tensor<2x8x24xf32>
    %q = tx.reshape %x : tensor<2x8x24xf32> -> tensor<2x8x6x4xf32>
    %half = tx.slice %x [0, 0, 0] by [1, 1, 1] : tensor<2x8x24xf32> -> tensor<2x8x12xf32>
    %k = tx.reshape %half : tensor<2x8x12xf32> -> tensor<2x8x3x4xf32>
    %out, %lse = tx.attention %q, %k, %k scale 0.5
      : (tensor<2x8x6x4xf32>, tensor<2x8x3x4xf32>, tensor<2x8x3x4xf32>) -> (tensor<2x8x6x4xf32>, tensor<2x6x8xf32>)
    return %out : tensor<2x8x6x4xf32>
  }
}
