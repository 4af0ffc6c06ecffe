// RUN: partita-opt %s --order-updates | FileCheck %s

!p = tensor<4xf32, #par.place<[4], partial [dp]>>
train.parameter @v : tensor<4xf32>
train.parameter @w : tensor<4xf32>

// CHECK-LABEL: func.func @example
// CHECK: %[[V:.*]] = train.read @v
// CHECK: %[[W:.*]] = train.read @w
// CHECK: %[[R:.*]] = par.all_reduce %arg0
// CHECK: %[[S:.*]] = par.all_reduce %arg1
// CHECK-NEXT: %[[Y:.*]] = train.sgd %[[W]], %[[R]], %arg2
// CHECK-NEXT: train.write @w, %[[Y]]
// CHECK-NEXT: %[[X:.*]] = train.sgd %[[V]], %[[S]], %arg2
// CHECK-NEXT: train.write @v, %[[X]]
// CHECK-NEXT: return
func.func @example(%a: !p, %b: !p, %rate: tensor<f32>) attributes {par.no_cotangents} {
  %v = train.read @v : tensor<4xf32>
  %w = train.read @w : tensor<4xf32>
  %r = par.all_reduce %a over "dp" : !p -> tensor<4xf32>
  %s = par.all_reduce %b over "dp" : !p -> tensor<4xf32>
  %x = train.sgd %v, %s, %rate {decay = 0.0} : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  train.write @v, %x : tensor<4xf32>
  %y = train.sgd %w, %r, %rate {decay = 0.0} : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  train.write @w, %y : tensor<4xf32>
  return
}

// What an update makes is used for something else: nothing moves.
// CHECK-LABEL: func.func @used
// CHECK: train.sgd %{{.*}}, %{{.*}}, %arg2
// CHECK-NEXT: tx.neg
// CHECK-NEXT: train.write @v
// CHECK-NEXT: train.sgd
func.func @used(%a: !p, %b: !p, %rate: tensor<f32>) -> tensor<4xf32> attributes {par.no_cotangents} {
  %v = train.read @v : tensor<4xf32>
  %w = train.read @w : tensor<4xf32>
  %r = par.all_reduce %a over "dp" : !p -> tensor<4xf32>
  %s = par.all_reduce %b over "dp" : !p -> tensor<4xf32>
  %x = train.sgd %v, %s, %rate {decay = 0.0} : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %n = tx.neg %x : (tensor<4xf32>) -> tensor<4xf32>
  train.write @v, %x : tensor<4xf32>
  %y = train.sgd %w, %r, %rate {decay = 0.0} : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  train.write @w, %y : tensor<4xf32>
  return %n : tensor<4xf32>
}

// A shard that is taken for an update, and the gather of what it makes, move with it; gathered values are written last.
// CHECK-LABEL: func.func @shards
// CHECK: %[[PW:.*]] = zero.shard
// CHECK-NEXT: %[[Y:.*]] = train.sgd %[[PW]], %{{.*}}
// CHECK-NEXT: %[[GW:.*]] = zero.gather %[[Y]]
// CHECK-NEXT: %[[PV:.*]] = zero.shard
// CHECK-NEXT: %[[X:.*]] = train.sgd %[[PV]], %{{.*}}
// CHECK-NEXT: %[[GV:.*]] = zero.gather %[[X]]
// CHECK-NEXT: train.write @w, %[[GW]]
// CHECK-NEXT: train.write @v, %[[GV]]
// CHECK-NEXT: return
!shard = tensor<2xf32, #par.place<[4], flat [dp]>>
module attributes {par.mesh = #par.mesh<dp = 2>} {
  train.parameter @v : tensor<4xf32>
  train.parameter @w : tensor<4xf32>
  func.func @shards(%a: !p, %b: !p, %rate: tensor<f32>) attributes {par.no_cotangents} {
    %v = train.read @v : tensor<4xf32>
    %w = train.read @w : tensor<4xf32>
    %pv = zero.shard %v over "dp" : tensor<4xf32> -> !shard
    %pw = zero.shard %w over "dp" : tensor<4xf32> -> !shard
    %r = zero.reduce_scatter %a over "dp" : !p -> !shard
    %s = zero.reduce_scatter %b over "dp" : !p -> !shard
    %x = train.sgd %pv, %s, %rate {decay = 0.0} : (!shard, !shard, tensor<f32>) -> !shard
    %gv = zero.gather %x over "dp" : !shard -> tensor<4xf32>
    train.write @v, %gv : tensor<4xf32>
    %y = train.sgd %pw, %r, %rate {decay = 0.0} : (!shard, !shard, tensor<f32>) -> !shard
    %gw = zero.gather %y over "dp" : !shard -> tensor<4xf32>
    train.write @w, %gw : tensor<4xf32>
    return
  }
}

// Gradients that slots of a loop reduce: the pass that ends first comes first, and in a pass the reduction that stands first.
!ps = tensor<2x4xf32, #par.place<[2, 4], partial [dp]>>
// CHECK-LABEL: func.func @slots
// CHECK: %{{.*}}:2, %[[L:.*]]:2 = train.accumulate
// CHECK: train.sgd %{{.*}}, %[[L]]#1, %arg1
// CHECK-NEXT: train.write @w
// CHECK-NEXT: train.sgd %{{.*}}, %[[L]]#0, %arg1
// CHECK-NEXT: train.write @v
func.func @slots(%xs: !ps, %rate: tensor<f32>) attributes {par.no_cotangents} {
  %v = train.read @v : tensor<4xf32>
  %w = train.read @w : tensor<4xf32>
  %da, %db, %ra, %rb = train.accumulate (%x = %xs) : (!ps) -> (!p, !p, tensor<4xf32>, tensor<4xf32>) {
    train.yield
  } backward (%d) onto (%sa = 0) {
    %a = tx.add %sa, %d : (!p, !p) -> !p
    %r = par.all_reduce %a over "dp" {train.last} : !p -> tensor<4xf32>
    train.yield %a : !p last %r : tensor<4xf32>
  } forward 1 (%e) {
    train.yield
  } backward 1 (%f) onto (%sb = 1) {
    %b = tx.add %sb, %f : (!p, !p) -> !p
    %r = par.all_reduce %b over "dp" {train.last} : !p -> tensor<4xf32>
    train.yield %b : !p last %r : tensor<4xf32>
  } {order = #train.order<2 x (forward 0, forward.1 0, backward.1 0, backward 0)>}
  %x = train.sgd %v, %ra, %rate {decay = 0.0} : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  train.write @v, %x : tensor<4xf32>
  %y = train.sgd %w, %rb, %rate {decay = 0.0} : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  train.write @w, %y : tensor<4xf32>
  return
}

// 1-bit Adam with ZeRO: the momentum is overwritten in full after the update has taken its shard of the old one.
!flat = tensor<2xf32, #par.place<[4], flat [dp]>>
module @momentum attributes {par.mesh = #par.mesh<dp = 2>} {
train.parameter @w : tensor<4xf32>
train.state @w.m : tensor<4xf32> = 0.000000e+00 of @w "m"
train.state @w.v : tensor<4xf32> = 0.000000e+00 of @w "v"
// CHECK-LABEL: func.func @in_full
// CHECK: %[[M:.*]] = train.read @w.m
// CHECK: %[[G:.*]] = zero.shard %arg0
// CHECK: %[[S:.*]] = zero.shard %[[M]]
// CHECK-NEXT: train.onebit_adam %{{.*}}, %[[G]], %[[S]],
// CHECK-NEXT: train.write @w.v
// CHECK-NEXT: zero.gather
// CHECK-NEXT: %[[MEAN:.*]] = par.one_bit_mean %arg0, %[[M]]
// CHECK-NEXT: train.write @w.m, %[[MEAN]]
// CHECK-NEXT: train.write @w,
func.func @in_full(%y: tensor<4xf32>, %rate: tensor<f32>, %t: tensor<f32>) attributes {par.no_cotangents} {
  %w = train.read @w : tensor<4xf32>
  %m = train.read @w.m : tensor<4xf32>
  %v = train.read @w.v : !flat
  %g = zero.shard %y over "dp" : tensor<4xf32> -> !flat
  %p = zero.shard %w over "dp" : tensor<4xf32> -> !flat
  %s = zero.shard %m over "dp" : tensor<4xf32> -> !flat
  %mean = par.one_bit_mean %y, %m at %t : tensor<f32> over "dp" beta 0.9 exact until 1 : tensor<4xf32>
  %new:3 = train.onebit_adam %p, %g, %s, %v, %rate, %t {beta1 = 0.9, beta2 = 0.99, compressed = 1.0, decay = 0.0, epsilon = 1.0e-8, freeze = 1.0}
     : (!flat, !flat, !flat, !flat, tensor<f32>, tensor<f32>) -> (!flat, !flat, !flat)
  train.write @w.m, %mean : tensor<4xf32>
  train.write @w.v, %new#2 : !flat
  %full = zero.gather %new#0 over "dp" because "updated parameter" : !flat -> tensor<4xf32>
  train.write @w, %full : tensor<4xf32>
  return
}
}
