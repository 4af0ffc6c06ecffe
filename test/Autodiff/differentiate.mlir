// RUN: partita-opt %s --differentiate | FileCheck %s

module attributes {par.mesh = #par.mesh<dp = 2>} {
train.parameter @w : tensor<4x6xf32>
train.parameter @frozen : tensor<6xf32> frozen
train.parameter @heads : tensor<2x4xf32>

// The gradient of what the loop captures is a sum over micro-batches, reduced once, after the loop.
// CHECK-LABEL: func.func @train_step
// CHECK-SAME: attributes {par.no_cotangents, train.entry_point = #train.entry_point<train_step>}
// CHECK: %[[W:.*]] = train.read @w
// CHECK: %[[F:.*]] = par.f %[[W]]
// CHECK: %[[SEED:.*]] = tx.constant dense<1.0
// CHECK: %[[SUMS:.*]]:2 = train.accumulate
// CHECK:   %[[Y:.*]] = tx.matmul %[[I:.*]], %[[F]]
// CHECK:   train.yield %{{.*}} : tensor<f32, #par.place<[], partial [dp]>>
// CHECK-NEXT: } backward (%[[J:.*]]) {
// CHECK:   %[[P:.*]] = tx.matmul_tn %[[J]], {{.*}} -> tensor<4x6xf32, #par.place<[4, 6], partial [dp]>>
// CHECK:   train.yield %[[P]] : tensor<4x6xf32, #par.place<[4, 6], partial [dp]>>
// CHECK: par.g %[[SUMS]]#0
// CHECK: %[[DW:.*]] = par.all_reduce %[[SUMS]]#1 over "dp" because "gradient"
// CHECK: train.update @w, %[[W]] by %[[DW]]
// CHECK-NOT: train.update @frozen
// CHECK-NOT: train.minimize
func.func @train_step(%x: tensor<3x4x4xf32, #par.place<[3, 8 @dp, 4]>>) -> tensor<f32> attributes {train.entry_point = #train.entry_point<train_step>} {
  %w = train.read @w : tensor<4x6xf32>
  %z = train.read @frozen : tensor<6xf32>
  %f = par.f %w over "dp" : tensor<4x6xf32> -> tensor<4x6xf32, #par.place<[4, 6], replicated [dp]>>
  %fz = par.f %z over "dp" : tensor<6xf32> -> tensor<6xf32, #par.place<[6], replicated [dp]>>
  %s = train.accumulate (%i = %x) : (tensor<3x4x4xf32, #par.place<[3, 8 @dp, 4]>>) -> tensor<f32, #par.place<[], partial [dp]>> {
    %y = tx.matmul %i, %f : (tensor<4x4xf32, #par.place<[8 @dp, 4]>>, tensor<4x6xf32, #par.place<[4, 6], replicated [dp]>>) -> tensor<4x6xf32, #par.place<[8 @dp, 6]>>
    %b = tx.broadcast %fz : tensor<6xf32, #par.place<[6], replicated [dp]>> -> tensor<4x6xf32, #par.place<[8 @dp, 6]>>
    %t = tx.add %y, %b : (tensor<4x6xf32, #par.place<[8 @dp, 6]>>, tensor<4x6xf32, #par.place<[8 @dp, 6]>>) -> tensor<4x6xf32, #par.place<[8 @dp, 6]>>
    %r = tx.reduce_sum %t [0, 1] : tensor<4x6xf32, #par.place<[8 @dp, 6]>> -> tensor<f32, #par.place<[], partial [dp]>>
    train.yield %r : tensor<f32, #par.place<[], partial [dp]>>
  }
  %g = par.g %s over "dp" : tensor<f32, #par.place<[], partial [dp]>> -> tensor<f32>
  train.minimize %g : tensor<f32>
  return %g : tensor<f32>
}

// Slopes that may be infinite, and zero slopes that such a cotangent may meet, are multiplied by tx.chain: zero times infinity is
// zero. So the root of a sum of squares has gradient zero at zeros.
// CHECK-LABEL: func.func @root
// CHECK: %[[LENGTH:.*]] = tx.sqrt
// CHECK: %[[SLOPE:.*]] = tx.chain_div %{{.*}}, %[[LENGTH]]
// CHECK: tx.chain %{{.*}}, %[[V:.*]] {train.backward} : (tensor<2x4xf32>, tensor<2x4xf32>)
// CHECK: tx.chain %{{.*}}, %[[V]]
func.func @root() {
  %w = train.read @heads : tensor<2x4xf32>
  %q = tx.mul %w, %w : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %n = tx.reduce_sum %q [1] : tensor<2x4xf32> -> tensor<2xf32>
  %l = tx.sqrt %n : (tensor<2xf32>) -> tensor<2xf32>
  %r = tx.reduce_sum %l [0] : tensor<2xf32> -> tensor<f32>
  train.minimize %r : tensor<f32>
  return
}

// Where the model itself rounds a value, its gradient is rounded too.
// CHECK-LABEL: func.func @rounded
// CHECK: tx.cast %{{.*}} {train.backward, tx.rounds_gradient} : tensor<2x4xf32> -> tensor<2x4xf16>
// CHECK-NEXT: tx.cast %{{.*}} {train.backward} : tensor<2x4xf16> -> tensor<2x4xf32>
func.func @rounded() {
  %w = train.read @heads : tensor<2x4xf32>
  %h = tx.cast %w {tx.rounds} : tensor<2x4xf32> -> tensor<2x4xf16>
  %x = tx.cast %h {tx.rounds} : tensor<2x4xf16> -> tensor<2x4xf32>
  %q = tx.mul %x, %x : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %r = tx.reduce_sum %q [0, 1] : tensor<2x4xf32> -> tensor<f32>
  train.minimize %r : tensor<f32>
  return
}

// The backward pass gets what it needs of the forward pass by name: of exp its result, which is saved; the view of it and the
// constant are made again.
// CHECK-LABEL: func.func @saved
// CHECK: %[[E:.*]] = tx.exp
// CHECK-NOT: {train.backward}
// CHECK: train.yield %{{.*}} : tensor<f32> saves %{{.*}}, %[[E]] : tensor<24xf32>, tensor<4x6xf32>
// CHECK-NEXT: } backward (%{{.*}}, %{{.*}}, %[[E1:.*]]) {
// CHECK: tx.constant dense<3.0{{.*}} {train.backward}
// CHECK: tx.reshape %[[E1]] {train.backward} : tensor<4x6xf32> -> tensor<24xf32>
// CHECK: tx.chain %{{.*}}, %[[E1]] {train.backward}
// CHECK: return
func.func @saved(%xs: tensor<2x4x4xf32>) {
  %w = train.read @w : tensor<4x6xf32>
  %s = train.accumulate (%x = %xs) : (tensor<2x4x4xf32>) -> tensor<f32> {
    %c = tx.constant dense<3.0> : tensor<24xf32> : tensor<24xf32>
    %y = tx.matmul %x, %w : (tensor<4x4xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    %e = tx.exp %y : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %v = tx.reshape %e : tensor<4x6xf32> -> tensor<24xf32>
    %q = tx.mul %v, %v : (tensor<24xf32>, tensor<24xf32>) -> tensor<24xf32>
    %p = tx.mul %q, %c : (tensor<24xf32>, tensor<24xf32>) -> tensor<24xf32>
    %r = tx.reduce_sum %p [0] : tensor<24xf32> -> tensor<f32>
    train.yield %r : tensor<f32>
  }
  train.minimize %s : tensor<f32>
  return
}

// A parameter that is used twice: both contributions are added before anything reduces them.
// CHECK-LABEL: func.func @tied
// CHECK: %[[A:.*]] = tx.add {{.*}} partial [dp]
// CHECK: %[[R:.*]] = par.all_reduce %[[A]] over "dp"
// CHECK: train.update @w, {{.*}} by %[[R]]
func.func @tied(%x: tensor<4x4xf32, #par.place<[8 @dp, 4]>>) {
  %w = train.read @w : tensor<4x6xf32>
  %f = par.f %w over "dp" : tensor<4x6xf32> -> tensor<4x6xf32, #par.place<[4, 6], replicated [dp]>>
  %y = tx.matmul %x, %f : (tensor<4x4xf32, #par.place<[8 @dp, 4]>>, tensor<4x6xf32, #par.place<[4, 6], replicated [dp]>>) -> tensor<4x6xf32, #par.place<[8 @dp, 6]>>
  %z = tx.matmul_nt %y, %f : (tensor<4x6xf32, #par.place<[8 @dp, 6]>>, tensor<4x6xf32, #par.place<[4, 6], replicated [dp]>>) -> tensor<4x4xf32, #par.place<[8 @dp, 4]>>
  %r = tx.reduce_sum %z [0, 1] : tensor<4x4xf32, #par.place<[8 @dp, 4]>> -> tensor<f32, #par.place<[], partial [dp]>>
  %g = par.g %r over "dp" : tensor<f32, #par.place<[], partial [dp]>> -> tensor<f32>
  train.minimize %g : tensor<f32>
  return
}

// So are the contributions of two reads, one of them in the loop.
// CHECK-LABEL: func.func @reads
// CHECK: %[[W:.*]] = train.read @heads
// CHECK-NOT: train.read
// CHECK: %[[S:.*]]:2 = train.accumulate
// CHECK: %[[D:.*]] = tx.add %{{.*}}, %{{.*}} {train.backward
// CHECK: train.update @heads, %[[W]] by %[[D]]
func.func @reads(%xs: tensor<3x2x4xf32>) {
  %s = train.accumulate (%x = %xs) : (tensor<3x2x4xf32>) -> tensor<f32> {
    %w = train.read @heads : tensor<2x4xf32>
    %y = tx.mul %x, %w : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %r = tx.reduce_sum %y [0, 1] : tensor<2x4xf32> -> tensor<f32>
    train.yield %r : tensor<f32>
  }
  %v = train.read @heads : tensor<2x4xf32>
  %q = tx.reduce_sum %v [0, 1] : tensor<2x4xf32> -> tensor<f32>
  %l = tx.add %s, %q : (tensor<f32>, tensor<f32>) -> tensor<f32>
  train.minimize %l : tensor<f32>
  return
}

// A rank's shard of two heads is one: nothing was repeated along it, so nothing is summed.
// CHECK-LABEL: func.func @shard_of_size_one
// CHECK: tx.reduce_sum {{.*}} [0] {train.backward} : tensor<5x1x4xf32, #par.place<[5, 2 @dp, 4]>> -> tensor<1x4xf32, #par.place<[2 @dp, 4]>>
// CHECK-NEXT: train.update @heads
func.func @shard_of_size_one(%x: tensor<5x1x4xf32, #par.place<[5, 2 @dp, 4]>>) {
  %w = train.read @heads : tensor<1x4xf32, #par.place<[2 @dp, 4]>>
  %b = tx.broadcast %w : tensor<1x4xf32, #par.place<[2 @dp, 4]>> -> tensor<5x1x4xf32, #par.place<[5, 2 @dp, 4]>>
  %y = tx.mul %x, %b : (tensor<5x1x4xf32, #par.place<[5, 2 @dp, 4]>>, tensor<5x1x4xf32, #par.place<[5, 2 @dp, 4]>>) -> tensor<5x1x4xf32, #par.place<[5, 2 @dp, 4]>>
  %r = tx.reduce_sum %y [0, 1, 2] : tensor<5x1x4xf32, #par.place<[5, 2 @dp, 4]>> -> tensor<f32, #par.place<[], partial [dp]>>
  %g = par.g %r over "dp" : tensor<f32, #par.place<[], partial [dp]>> -> tensor<f32>
  train.minimize %g : tensor<f32>
  return
}
}
