// RUN: partita-opt %s --partition-propagate --partition-materialize --partition-verify | FileCheck %s

module attributes {par.mesh = #par.mesh<dp = 2>} {
train.parameter @w : tensor<4x6xf32>
train.parameter @p : tensor<5x4xf32>

// f at the parameter's definition, outside of the loop; g at the minimized loss; nothing else.
// CHECK-LABEL: func.func @train_step
// CHECK-SAME: (%[[X:.*]]: tensor<3x4x4xf32, #par.place<[3, 8 @dp, 4]>>) -> tensor<f32>
// CHECK: %[[W:.*]] = train.read @w : tensor<4x6xf32>
// CHECK-NEXT: %[[F:.*]] = par.f %[[W]] over "dp" {par.causes = [#par.cause<parameter "*0" in {{.*}}]} : tensor<4x6xf32> -> tensor<4x6xf32, #par.place<[4, 6], replicated [dp]>>
// CHECK-NEXT: %[[SUM:.*]] = train.accumulate (%[[I:.*]] = %[[X]])
// CHECK-NEXT:   %[[Y:.*]] = tx.matmul %[[I]], %[[F]] : {{.*}} -> tensor<4x6xf32, #par.place<[8 @dp, 6]>>
// CHECK-NEXT:   %[[R:.*]] = tx.reduce_sum %[[Y]] [0, 1] : {{.*}} -> tensor<f32, #par.place<[], partial [dp]>>
// CHECK-NEXT:   train.yield %[[R]]
// CHECK: %[[G:.*]] = par.g %[[SUM]] over "dp" {{.*}} : tensor<f32, #par.place<[], partial [dp]>> -> tensor<f32>
// CHECK-NEXT: train.minimize %[[G]]
// CHECK-NEXT: return %[[G]]
func.func @train_step(%x: tensor<3x8x4xf32> {par.split = #par.place<[3, 8 @dp, 4]>}) -> tensor<f32> attributes {train.entry_point = #train.entry_point<train_step>} {
  %w = train.read @w : tensor<4x6xf32>
  %s = train.accumulate (%i = %x) : (tensor<3x8x4xf32>) -> tensor<f32> {
    %y = tx.matmul %i, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %r = tx.reduce_sum %y [0, 1] : tensor<8x6xf32> -> tensor<f32>
    train.yield %r : tensor<f32>
  }
  train.minimize %s : tensor<f32>
  return %s : tensor<f32>
}

// A value that depends on parameters alone is replicated from the parameter on: its f stands there too.
// CHECK-LABEL: func.func @positions
// CHECK: %[[P:.*]] = train.read @p
// CHECK-NEXT: %[[F:.*]] = par.f %[[P]] over "dp"
// CHECK: tx.embedding %[[F]], {{.*}} -> tensor<8x4xf32, #par.place<[8, 4], replicated [dp]>>
// CHECK: tx.broadcast {{.*}} -> tensor<1x8x4xf32, #par.place<[2 @dp, 8, 4]>>
// CHECK-COUNT-1: par.g
// CHECK-NOT: par.f
func.func @positions(%x: tensor<2x8x4xf32> {par.split = #par.place<[2 @dp, 8, 4]>}) {
  %i = tx.iota 0.0, 1.0 : tensor<8xi64>
  %p = train.read @p : tensor<5x4xf32>
  %e = tx.embedding %p, %i : (tensor<5x4xf32>, tensor<8xi64>) -> tensor<8x4xf32>
  %b = tx.broadcast %e : tensor<8x4xf32> -> tensor<2x8x4xf32>
  %y = tx.mul %x, %b : (tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  %s = tx.reduce_sum %y [0, 1, 2] : tensor<2x8x4xf32> -> tensor<f32>
  train.minimize %s : tensor<f32>
  return
}

// Without a gradient there is nothing to conjugate; a partial sum is completed where it stops being linear.
// CHECK-LABEL: func.func @inference
// CHECK-SAME: attributes {par.no_cotangents}
// CHECK-NOT: par.f
// CHECK: %[[S:.*]] = tx.reduce_sum {{.*}} -> tensor<6xf32, #par.place<[6], partial [dp]>>
// CHECK: %[[D:.*]] = tx.add %[[S]], %[[S]] {{.*}} -> tensor<6xf32, #par.place<[6], partial [dp]>>
// CHECK: %[[G:.*]] = par.g %[[D]] over "dp"
// CHECK: tx.exp %[[G]] : (tensor<6xf32>) -> tensor<6xf32>
func.func @inference(%x: tensor<8x4xf32> {par.split = #par.place<[8 @dp, 4]>}) -> tensor<6xf32> {
  %w = train.read @w : tensor<4x6xf32>
  %y = tx.matmul %x, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  %s = tx.reduce_sum %y [0] : tensor<8x6xf32> -> tensor<6xf32>
  %d = tx.add %s, %s : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  %e = tx.exp %d : (tensor<6xf32>) -> tensor<6xf32>
  return %e : tensor<6xf32>
}

// @init writes what the others read: here half of the rows on each rank.
train.parameter @half : tensor<8x6xf32> {par.split = #par.place<[8 @dp, 6]>}
// CHECK-LABEL: func.func @init
// CHECK: train.initial_value @half : tensor<4x6xf32, #par.place<[8 @dp, 6]>>
// CHECK-NEXT: train.write @half, %{{.*}} : tensor<4x6xf32, #par.place<[8 @dp, 6]>>
func.func @init() attributes {train.entry_point = #train.entry_point<init>} {
  %0 = train.initial_value @half : tensor<8x6xf32>
  train.write @half, %0 : tensor<8x6xf32>
  return
}
func.func @reader() {
  %0 = train.read @half : tensor<8x6xf32>
  return
}

// Seven tokens on two ranks: logits that are divided by a number, capped and multiplied have zero padding; the number has none.
train.parameter @table : tensor<4x7xf32> {par.split = #par.place<[4, 7 @dp]>}
// CHECK-LABEL: func.func @capped
// CHECK: %[[N:.*]] = tx.broadcast {{.*}} -> tensor<2x4xf32, #par.place<[2, 7 @dp]>>
// CHECK: tx.div %{{.*}}, %[[N]]
// CHECK: tx.tanh {{.*}} -> tensor<2x4xf32, #par.place<[2, 7 @dp]>>
func.func @capped(%x: tensor<2x4xf32>, %n: tensor<f32>) -> tensor<2x7xf32> {
  %w = train.read @table : tensor<4x7xf32>
  %y = tx.matmul %x, %w : (tensor<2x4xf32>, tensor<4x7xf32>) -> tensor<2x7xf32>
  %b = tx.broadcast %n : tensor<f32> -> tensor<2x7xf32>
  %d = tx.div %y, %b : (tensor<2x7xf32>, tensor<2x7xf32>) -> tensor<2x7xf32>
  %t = tx.tanh %d : (tensor<2x7xf32>) -> tensor<2x7xf32>
  %m = tx.mul %b, %t : (tensor<2x7xf32>, tensor<2x7xf32>) -> tensor<2x7xf32>
  return %m : tensor<2x7xf32>
}

// Every rank has a constant with a value per head in full, and takes its shard, axis by axis; a splat is made smaller.
// CHECK-LABEL: func.func @slopes
// CHECK: %[[ALL:.*]] = tx.constant dense<{{\[\[}}1.000000e+00, 2.000000e+00{{\]}}, {{.*}}> : tensor<8x2xf32> : tensor<8x2xf32>
// CHECK-NEXT: %[[SHARD:.*]] = par.narrow %[[ALL]] over "dp" along 0 {par.causes = [#par.cause<shard "*0" in "~*, ~* -> *" of "tx.mul" "" layer -1 of 0 seed <"batch" "" of []>>]} : tensor<8x2xf32> -> tensor<4x2xf32, #par.place<[8 @dp, 2]>>
// CHECK-NEXT: %[[SPLAT:.*]] = tx.constant dense<2.000000e+00> : tensor<4x2xf32> : tensor<4x2xf32, #par.place<[8 @dp, 2]>>
// CHECK-NEXT: tx.mul %[[SHARD]], %[[SPLAT]]
func.func @slopes(%x: tensor<8x2xf32> {par.split = #par.place<[8 @dp, 2]>}) -> tensor<8x2xf32> {
  %c = tx.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0], [1.5, 2.5], [3.5, 4.5], [5.5, 6.5], [7.5, 8.5]]> : tensor<8x2xf32> : tensor<8x2xf32>
  %t = tx.constant dense<2.0> : tensor<8x2xf32> : tensor<8x2xf32>
  %m = tx.mul %c, %t : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %y = tx.mul %x, %m : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  return %y : tensor<8x2xf32>
}

// An open sum is completed in front of a matmul that makes as much of it, or more; of one that makes less, the result is.
train.parameter @rows : tensor<6x4xf32> {par.split = #par.place<[6 @dp, 4]>}
train.parameter @square : tensor<4x4xf32>
train.parameter @narrow : tensor<4x1xf32>
// CHECK-LABEL: func.func @matmuls
// CHECK: %[[SQUARE:.*]] = train.read @square
// CHECK: %[[NARROW:.*]] = train.read @narrow
// CHECK-NEXT: %[[P:.*]] = tx.matmul {{.*}} partial [dp]
// CHECK-NEXT: %[[G:.*]] = par.g %[[P]]
// CHECK-NEXT: tx.matmul %[[G]], %[[SQUARE]] : {{.*}} -> tensor<5x4xf32>
// CHECK-NEXT: %[[L:.*]] = tx.matmul %[[P]], %[[NARROW]]
// CHECK-NEXT: par.g %[[L]]
func.func @matmuls(%x: tensor<5x6xf32> {par.split = #par.place<[5, 6 @dp]>}) -> (tensor<5x4xf32>, tensor<5x1xf32>) {
  %w = train.read @rows : tensor<6x4xf32>
  %q = train.read @square : tensor<4x4xf32>
  %n = train.read @narrow : tensor<4x1xf32>
  %y = tx.matmul %x, %w : (tensor<5x6xf32>, tensor<6x4xf32>) -> tensor<5x4xf32>
  %a = tx.matmul %y, %q : (tensor<5x4xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
  %b = tx.matmul %y, %n : (tensor<5x4xf32>, tensor<4x1xf32>) -> tensor<5x1xf32>
  %e = tx.exp %b : (tensor<5x1xf32>) -> tensor<5x1xf32>
  return %a, %e : tensor<5x4xf32>, tensor<5x1xf32>
}
}
