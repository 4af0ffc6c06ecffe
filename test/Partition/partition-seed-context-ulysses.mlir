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
