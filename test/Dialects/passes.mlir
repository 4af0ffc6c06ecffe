// RUN: partita-opt %s --split-input-file --verify-diagnostics | FileCheck %s
// RUN: partita-opt %s --split-input-file --verify-diagnostics | partita-opt --split-input-file | FileCheck %s

// Any number of passes, of which each reads what earlier ones save.
// CHECK-LABEL: func.func @passes
// CHECK: train.yield %{{.*}} : tensor<f32> saves %{{.*}} : tensor<4xf32>
// CHECK-NEXT: } forward 1 (%{{.*}}, %[[H:.*]]) {
// CHECK: train.yield saves %{{.*}} : tensor<2xf32>
// CHECK-NEXT: } backward 1 (%{{.*}}, %{{.*}}, %{{.*}}) {
// CHECK: } backward (%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {
// CHECK-NEXT: train.yield{{$}}
// CHECK: } weights (%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) onto (%{{.*}} = 1) {
// CHECK: } {order = #train.order<1 x (forward 0, forward.1 0, backward.1 0, backward 0, weights 0), 1 x (forward 1, forward.1 1, backward.1 1, backward 1, weights 1)>}
func.func @passes(%xs: tensor<2x4xf32>) {
  %0:2 = train.accumulate (%x = %xs) : (tensor<2x4xf32>) -> (tensor<f32>, tensor<4xf32>) {
    %h = tx.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    %loss = tx.reduce_sum %h [0] : tensor<4xf32> -> tensor<f32>
    train.yield %loss : tensor<f32> saves %h : tensor<4xf32>
  } forward 1 (%x1, %h1) {
    %part = tx.slice %h1 [0] by [1] : tensor<4xf32> -> tensor<2xf32>
    train.yield saves %part : tensor<2xf32>
  } backward 1 (%x2, %h2, %part2) {
    %d = tx.concat %part2, %part2 along 0 : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
    train.yield saves %d : tensor<4xf32>
  } backward (%x3, %h3, %part3, %d3) {
    train.yield
  } weights (%x4, %h4, %part4, %d4) onto (%s = 1) {
    %w = tx.mul %h4, %d4 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %sum = tx.add %w, %s : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    train.yield %sum : tensor<4xf32>
  } {order = #train.order<1 x (forward 0, forward.1 0, backward.1 0, backward 0, weights 0), 1 x (forward 1, forward.1 1, backward.1 1, backward 1, weights 1)>}
  return
}

// -----

// What a later pass has anyhow is not saved: a micro-batch, a value from outside, one that an earlier pass saves, one that is saved already, one
// that nobody reads.
// CHECK-LABEL: func.func @simplified
func.func @simplified(%xs: tensor<2x4xf32>) {
  %0 = train.accumulate (%x = %xs) : (tensor<2x4xf32>) -> tensor<4xf32> {
    %h = tx.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    train.yield saves %h : tensor<4xf32>
  } backward (%x1, %h1) {
    %d = tx.relu %h1 : (tensor<4xf32>) -> tensor<4xf32>
    train.yield saves %d, %h1, %x1, %d, %d : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  } weights (%x2, %h2, %d2, %h3, %x3, %d3, %d4) {
    %1 = tx.add %h3, %x3 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2 = tx.add %1, %d3 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    train.yield %2 : tensor<4xf32>
  }
  return
}

// -----

func.func @weights_alone(%xs: tensor<1x4xf32>) {
  // expected-error @+1 {{has a weights region, and no backward region in front of it}}
  %0:2 = train.accumulate (%x = %xs) : (tensor<1x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    train.yield %x : tensor<4xf32>
  } weights (%x1) {
    train.yield %x1 : tensor<4xf32>
  }
  return
}

// -----

func.func @forward_missing(%xs: tensor<1x4xf32>) {
  // expected-error @+1 {{has a backward 1 region, and no forward 1 region in front of it}}
  %0:2 = train.accumulate (%x = %xs) : (tensor<1x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    train.yield %x : tensor<4xf32>
  } backward 1 (%x1) {
    train.yield %x1 : tensor<4xf32>
  }
  return
}

// -----

func.func @two(%xs: tensor<1x4xf32>) {
  // expected-error @+1 {{has two forward regions}}
  %0:2 = train.accumulate (%x = %xs) : (tensor<1x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    train.yield %x : tensor<4xf32>
  } forward (%x1) {
    train.yield %x1 : tensor<4xf32>
  }
  return
}

// -----

func.func @unnamed(%xs: tensor<1x4xf32>) {
  // expected-error @+1 {{has 1 later regions, and says of 0 which passes they are}}
  %0 = "train.accumulate"(%xs) <{resultSegmentSizes = array<i32: 1, 0>}> ({
  ^bb0(%x: tensor<4xf32>):
    train.yield %x : tensor<4xf32>
  }, {
  ^bb0(%x1: tensor<4xf32>):
    train.yield
  }) : (tensor<1x4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @arguments(%xs: tensor<1x4xf32>) {
  %0 = train.accumulate (%x = %xs) : (tensor<1x4xf32>) -> tensor<4xf32> {
    train.yield %x : tensor<4xf32> saves %x : tensor<4xf32>
  } backward (%x1, %y1) {
    train.yield saves %y1 : tensor<4xf32>
  // expected-error @+1 {{expects 3 arguments of the weights region (1 micro-batches, 2 saved values), found 2}}
  } weights (%x2, %y2) {
    train.yield
  }
  return
}

// -----

func.func @no_region(%xs: tensor<1x4xf32>) {
  // expected-error @+1 {{has no weights region for its order's 'weights 0'}}
  %0 = train.accumulate (%x = %xs) : (tensor<1x4xf32>) -> tensor<4xf32> {
    train.yield %x : tensor<4xf32>
  } backward (%x1) {
    train.yield
  } {order = #train.order<1 x (forward 0, backward 0, weights 0)>}
  return
}

// -----

// The passes of one chunk need each other by their nature, those of different ones by what they read.
func.func @reads(%xs: tensor<1x4xf32>) {
  // expected-error @+1 {{has an order in which 'backward 0' stands in front of 'forward.1 0', which it needs}}
  %0 = train.accumulate (%x = %xs) : (tensor<1x4xf32>) -> tensor<4xf32> {
    train.yield
  } forward 1 (%x1) {
    %h = tx.exp %x1 : (tensor<4xf32>) -> tensor<4xf32>
    train.yield saves %h : tensor<4xf32>
  } backward (%x2, %h2) {
    train.yield %h2 : tensor<4xf32>
  } {order = #train.order<1 x (forward 0, backward 0, forward.1 0)>}
  return
}

// -----

func.func @without(%xs: tensor<1x4xf32>) {
  // expected-error @+1 {{has an order without 'weights 0'}}
  %0 = train.accumulate (%x = %xs) : (tensor<1x4xf32>) -> tensor<4xf32> {
    train.yield %x : tensor<4xf32>
  } backward (%x1) {
    train.yield
  } weights (%x2) {
    train.yield
  } {order = #train.order<1 x (forward 0, backward 0)>}
  return
}

// -----

// expected-error @+1 {{a slot is 'forward', 'backward' or 'weights', perhaps with a chunk after a dot, not 'forward.x'}}
func.func private @chunk() attributes {test.order = #train.order<1 x (forward.x 0)>}

// -----

// expected-error @+1 {{a pass is 'forward', 'backward' or 'weights', not 'sideways'}}
func.func private @pass() attributes {test.pass = #train.pass<sideways>}

// -----

// expected-error @+1 {{chunk -1 of a pass, expected at least 0}}
func.func private @negative() attributes {test.pass = #train.pass<forward -1>}

// -----

// expected-error @+1 {{a ring has at least one block, of no fewer than 0 bytes, at an offset from 0 on, and not 0 of 64 bytes at 0}}
func.func private @ring() attributes {test.ring = #rt.in_flight<0 x 64 at 0>}

// -----

// What a pass computes in its last slot, and hands out.
!p = tensor<4xf32, #par.place<[4], partial [dp]>>
!ps = tensor<2x4xf32, #par.place<[2, 4], partial [dp]>>
// CHECK-LABEL: func.func @last
// CHECK: %{{.*}}, %[[L:.*]]:2 = train.accumulate
// CHECK: %[[T:.*]] = par.all_reduce_start %[[W:.*]] over "dp" {train.last}
// CHECK-NEXT: train.yield %[[W]] : {{.*}} last %[[T]], %[[W]] : i64, tensor<4xf32, {{.*}}>
// CHECK: par.wait %[[L]]#0, %[[L]]#1
func.func @last(%xs: !ps) -> tensor<4xf32> attributes {par.no_cotangents} {
  %dw, %token, %begun = train.accumulate (%x = %xs) : (!ps) -> (!p, i64, !p) {
    train.yield
  } backward (%d) onto (%s = 0) {
    %w = tx.add %s, %d : (!p, !p) -> !p
    %t = par.all_reduce_start %w over "dp" {train.last} : !p -> i64
    train.yield %w : !p last %t, %w : i64, !p
  } {order = #train.order<2 x (forward 0, backward 0)>}
  %r = par.wait %token, %begun : i64, !p -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

func.func @no_order(%xs: tensor<2x4xf32>) {
  // expected-error @+1 {{has last values, but no order that says when a pass runs last}}
  %0 = train.accumulate (%x = %xs) : (tensor<2x4xf32>) -> tensor<4xf32> {
    train.yield last %x : tensor<4xf32>
  }
  return
}

// -----

func.func @another_type(%xs: tensor<2x4xf32>) {
  // expected-error @+1 {{has last values of types 'i64', and its regions yield 'tensor<4xf32>'}}
  %0 = train.accumulate (%x = %xs) : (tensor<2x4xf32>) -> i64 {
    train.yield last %x : tensor<4xf32>
  } {order = #train.order<2 x (forward 0)>}
  return
}

// -----

func.func @used_always(%xs: tensor<2x4xf32>) {
  %0 = train.accumulate (%x = %xs) : (tensor<2x4xf32>) -> tensor<4xf32> {
    // expected-error @+1 {{runs in the last slot of its pass only, but 'tx.neg', which uses it, in every one}}
    %1 = tx.exp %x {train.last} : (tensor<4xf32>) -> tensor<4xf32>
    %2 = tx.neg %1 : (tensor<4xf32>) -> tensor<4xf32>
    train.yield %2 : tensor<4xf32>
  } {order = #train.order<2 x (forward 0)>}
  return
}

// -----

func.func @in_no_pass(%x: tensor<4xf32>) {
  // expected-error @+1 {{train.last is unit; an op of a pass of a loop with an order has it, as a unit}}
  %1 = tx.exp %x {train.last} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

!p = tensor<4xf32, #par.place<[4], partial [dp]>>
!ps = tensor<2x4xf32, #par.place<[2, 4], partial [dp]>>
func.func @never_awaited(%xs: !ps) attributes {par.no_cotangents} {
  %dw, %token, %begun = train.accumulate (%x = %xs) : (!ps) -> (!p, i64, !p) {
    train.yield
  } backward (%d) onto (%s = 0) {
    %w = tx.add %s, %d : (!p, !p) -> !p
    // expected-error @+1 {{needs one wait in its block, for its token and all that it fills, and no other use of them}}
    %t = par.all_reduce_start %w over "dp" {train.last} : !p -> i64
    train.yield %w : !p last %t, %w : i64, !p
  } {order = #train.order<2 x (forward 0, backward 0)>}
  return
}
