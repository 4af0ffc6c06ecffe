// RUN: partita-opt %s --pipe-cut --canonicalize --split-input-file | FileCheck %s
// RUN: partita-opt %s --pipe-cut --canonicalize --split-input-file --split-backward | FileCheck %s --check-prefix=SPLIT

// Each chunk's backward pass is split: what the stage's other chunk reads of it stays.
// SPLIT: pipe.stage = 0 : i64, pipe.wave
// SPLIT: } backward 1 (%{{.*}}, %{{.*}}) {
// SPLIT-NEXT: pipe.send %{{.*}} over <0 to 1, number 1>
// SPLIT-NEXT: train.yield{{$}}
// SPLIT: } backward (%{{.*}}, %{{.*}}) {
// SPLIT-NEXT: %[[D:.*]] = pipe.recv over <1 to 0> :
// SPLIT-NEXT: train.yield saves %[[D]]
// SPLIT: } weights 1 (%{{.*}}, %[[X:.*]], %{{.*}}) {
// SPLIT-NEXT: tx.exp %[[X]]
// SPLIT: } weights (%[[X0:.*]], %{{.*}}, %[[D0:.*]]) {
// SPLIT-NEXT: tx.mul %[[D0]], %[[X0]]
// SPLIT: pipe.stage = 1 : i64, pipe.wave
// SPLIT: } backward 1 (
// SPLIT-NEXT: %[[D2:.*]] = pipe.recv over <0 to 1, number 1>
// SPLIT-NEXT: %[[D1:.*]] = tx.mul %[[D2]], %{{.*}}
// SPLIT-NEXT: train.yield %[[D1]] : tensor<4xf32> saves %[[D1]]

// Two stages of two chunks in a wave: positions 0 and 3 are on stage 0, 1 and 2 on stage 1. Between 1 and 2 nothing is sent; a value is
// saved. Each chunk has its part of a gradient, and the sum over positions of one stage is an addition.
// CHECK: module attributes {pipe.chunks = 2 : i64, pipe.count = 2 : i64, pipe.stage = 0 : i64, pipe.wave} {
// CHECK-NEXT: train.parameter @a : tensor<4xf32>{{$}}
// CHECK: %[[A:.*]] = train.read @a
// CHECK-NEXT: %[[SUMS:.*]]:3 = train.accumulate (%[[X:.*]] = %{{.*}}) : (tensor<4x4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
// CHECK-NEXT: %[[Y:.*]] = tx.mul %[[X]], %[[A]]
// CHECK-NEXT: pipe.send %[[Y]] over <0 to 1> :
// CHECK-NEXT: train.yield
// CHECK-NEXT: } forward 1 (%{{.*}}) {
// CHECK-NEXT: %[[X3:.*]] = pipe.recv over <1 to 0, number 1>
// CHECK-NEXT: %[[Y3:.*]] = tx.mul %[[X3]], %[[A]]
// CHECK-NEXT: train.yield %[[Y3]] : tensor<4xf32> saves %[[X3]]
// CHECK-NEXT: } backward 1 (%{{.*}}, %[[X3S:.*]]) {
// CHECK-NEXT: %[[DA3:.*]] = tx.exp %[[X3S]]
// CHECK-NEXT: pipe.send %[[A]] over <0 to 1, number 1>
// CHECK-NEXT: train.yield %[[DA3]]
// CHECK-NEXT: } backward (%[[X0:.*]], %{{.*}}) {
// CHECK-NEXT: %[[D0:.*]] = pipe.recv over <1 to 0> :
// CHECK-NEXT: %[[DA0:.*]] = tx.mul %[[D0]], %[[X0]]
// CHECK-NEXT: train.yield %[[DA0]]
// CHECK: %[[DA:.*]] = tx.add %[[SUMS]]#1, %[[SUMS]]#2
// CHECK-NEXT: return %[[SUMS]]#0, %[[DA]]
// CHECK: module attributes {pipe.chunks = 2 : i64, pipe.count = 2 : i64, pipe.stage = 1 : i64, pipe.wave} {
// CHECK: %[[B:.*]] = train.read @b
// CHECK-NEXT: train.accumulate (%{{.*}} = %{{.*}}) : (tensor<4x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
// CHECK-NEXT: %[[X1:.*]] = pipe.recv over <0 to 1> :
// CHECK-NEXT: %[[Y1:.*]] = tx.mul %[[X1]], %[[B]]
// CHECK-NEXT: train.yield saves %[[Y1]], %[[X1]]
// CHECK-NEXT: } forward 1 (%{{.*}}, %[[X2:.*]], %{{.*}}) {
// CHECK-NEXT: %[[Y2:.*]] = tx.mul %[[X2]], %[[B]]
// CHECK-NEXT: pipe.send %[[Y2]] over <1 to 0, number 1>
// CHECK-NEXT: train.yield
// CHECK-NEXT: } backward 1 (%{{.*}}, %[[X2S:.*]], %{{.*}}) {
// CHECK-NEXT: %[[D2:.*]] = pipe.recv over <0 to 1, number 1>
// CHECK-NEXT: %[[D1:.*]] = tx.mul %[[D2]], %[[X2S]]
// CHECK-NEXT: train.yield %[[D1]] : tensor<4xf32> saves %[[D1]]
// CHECK-NEXT: } backward (%{{.*}}, %{{.*}}, %[[X1S:.*]], %[[D1S:.*]]) {
// CHECK-NEXT: %[[DX:.*]] = tx.mul %[[D1S]], %[[X1S]]
// CHECK-NEXT: pipe.send %[[DX]] over <1 to 0> :
// CHECK-NEXT: train.yield %[[DX]]
// CHECK: tx.add
#wave = #train.schedule<name = "zb-v", orders = [#train.order<3 x (forward 0), 2 x (forward.1 0, backward.1 0, weights.1 0), 1 x (forward 3), 2 x (backward 0, weights 0, forward.1 2, backward.1 2, weights.1 2), 2 x (backward 2, weights 2)>, #train.order<1 x (forward 0, forward.1 0, forward 1), 2 x (forward.1 1, backward.1 0, weights.1 0, forward 2, backward 0, weights 0), 1 x (forward.1 3, backward.1 2, weights.1 2, backward 2, backward.1 3, backward 3, weights 2, weights.1 3, weights 3)>]>
module attributes {pipe.stages = 2, pipe.chunks = 2, pipe.wave, train.schedule = #wave} {
train.parameter @a : tensor<4xf32> {pipe.on = array<i64: 0, 3>}
train.parameter @b : tensor<4xf32> {pipe.on = array<i64: 1, 2>}
func.func @step(%xs: tensor<4x4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %ra = train.read @a : tensor<4xf32>
  %rb = train.read @b : tensor<4xf32>
  %a = pipe.share %ra on [0, 3] : tensor<4xf32>
  %b = pipe.share %rb on [1, 2] : tensor<4xf32>
  %loss, %da, %db = train.accumulate (%x = %xs) : (tensor<4x4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
    %a0 = pipe.pin %a to 0 : tensor<4xf32>
    %y0 = tx.mul %x, %a0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %x1 = pipe.move %y0 over <0 to 1> : tensor<4xf32>
    %b1 = pipe.pin %b to 1 : tensor<4xf32>
    %y1 = tx.mul %x1, %b1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %x2 = pipe.move %y1 over <1 to 2> : tensor<4xf32>
    %b2 = pipe.pin %b to 2 : tensor<4xf32>
    %y2 = tx.mul %x2, %b2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %x3 = pipe.move %y2 over <2 to 3, number 1> : tensor<4xf32>
    %a3 = pipe.pin %a to 3 : tensor<4xf32>
    %y3 = tx.mul %x3, %a3 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    train.yield %y3 : tensor<4xf32> saves %x1, %x2, %x3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  } backward (%x0, %x1s, %x2s, %x3s) {
    %a3 = pipe.pin %a to 3 : tensor<4xf32>
    %da3 = tx.exp %x3s : (tensor<4xf32>) -> tensor<4xf32>
    %d2 = pipe.move %a3 over <3 to 2, number 1> : tensor<4xf32>
    %db2 = tx.mul %d2, %x2s : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %d1 = pipe.move %db2 over <2 to 1> : tensor<4xf32>
    %db1 = tx.mul %d1, %x1s : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %d0 = pipe.move %db1 over <1 to 0> : tensor<4xf32>
    %da0 = tx.mul %d0, %x0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %da = tx.add %da0, %da3 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %db = tx.add %db1, %db2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    train.yield %da, %db : tensor<4xf32>, tensor<4xf32>
  }
  %sa = pipe.sum %da on [0, 3] : tensor<4xf32>
  %sb = pipe.sum %db on [1, 2] : tensor<4xf32>
  return %loss, %sa, %sb : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
}

// -----

// Assigned round-robin, positions 0 and 2 are on stage 0: what 2 needs of 0 is saved there. What both ends of the model read is on
// both stages. A function without a backward pass is one sequence.
// CHECK: module attributes {pipe.chunks = 2 : i64, pipe.count = 2 : i64, pipe.stage = 0 : i64} {
// CHECK: %[[SUM:.*]] = train.accumulate
// CHECK-NEXT: %[[Y:.*]] = tx.mul
// CHECK-NEXT: pipe.send %[[Y]] over <0 to 1> :
// CHECK-NEXT: train.yield saves %[[Y]]
// CHECK-NEXT: } forward 1 (%{{.*}}, %[[YS:.*]]) {
// CHECK-NEXT: %[[X2:.*]] = pipe.recv over <1 to 0, number 1>
// CHECK-NEXT: %[[Y2:.*]] = tx.add %[[X2]], %[[YS]]
// CHECK-NEXT: pipe.send %[[Y2]] over <0 to 1, number 2>
// CHECK: } backward 1 (%{{.*}}, %{{.*}}) {
// CHECK-NEXT: %[[D2:.*]] = pipe.recv over <1 to 0, number 2>
// CHECK-NEXT: pipe.send %[[D2]] over <0 to 1, number 1>
// CHECK-NEXT: train.yield saves %[[D2]]
// CHECK-NEXT: } backward (%{{.*}}, %{{.*}}, %[[D2S:.*]]) {
// CHECK-NEXT: %[[D0:.*]] = pipe.recv over <1 to 0> :
// CHECK-NEXT: tx.add %[[D0]], %[[D2S]]
// CHECK: %[[DA:.*]] = pipe.sum %[[SUM]] on [0, 1]
// CHECK-NEXT: return %[[DA]]
// CHECK: func.func @forward(%{{.*}}: tensor<4xf32>) attributes {train.entry_point = #train.entry_point<forward>} {
// CHECK: %[[F0:.*]] = tx.mul
// CHECK-NEXT: pipe.send %[[F0]] over <0 to 1> :
// CHECK-NEXT: %[[F1:.*]] = pipe.recv over <1 to 0, number 1>
// CHECK-NEXT: %[[F2:.*]] = tx.add %[[F1]], %[[F0]]
// CHECK-NEXT: pipe.send %[[F2]] over <0 to 1, number 2>
// CHECK-NEXT: return
// CHECK: module attributes {pipe.chunks = 2 : i64, pipe.count = 2 : i64, pipe.stage = 1 : i64} {
// CHECK: func.func @forward(%{{.*}}: tensor<4xf32>) -> tensor<4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
#turn = #train.schedule<name = "interleaved", orders = [#train.order<2 x (forward 0), 2 x (forward.1 0), 2 x (backward.1 0), 2 x (backward 0)>, #train.order<2 x (forward 0), 2 x (forward.1 0), 2 x (backward.1 0), 2 x (backward 0)>]>
module attributes {pipe.stages = 2, pipe.chunks = 2, train.schedule = #turn} {
train.parameter @a : tensor<4xf32> {pipe.on = array<i64: 0, 3>}
func.func @step(%xs: tensor<2x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %ra = train.read @a : tensor<4xf32>
  %a = pipe.share %ra on [0, 3] : tensor<4xf32>
  %loss, %da = train.accumulate (%x = %xs) : (tensor<2x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %a0 = pipe.pin %a to 0 : tensor<4xf32>
    %y0 = tx.mul %x, %a0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %x1 = pipe.move %y0 over <0 to 1> : tensor<4xf32>
    %again = pipe.move %y0 over <0 to 2> : tensor<4xf32>
    %y1 = tx.exp %x1 : (tensor<4xf32>) -> tensor<4xf32>
    %x2 = pipe.move %y1 over <1 to 2, number 1> : tensor<4xf32>
    %y2 = tx.add %x2, %again : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %x3 = pipe.move %y2 over <2 to 3, number 2> : tensor<4xf32>
    %a3 = pipe.pin %a to 3 : tensor<4xf32>
    %y3 = tx.mul %x3, %a3 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    train.yield %y3 : tensor<4xf32> saves %x3, %y1 : tensor<4xf32>, tensor<4xf32>
  } backward (%x0, %x3s, %y1s) {
    %a3 = pipe.pin %a to 3 : tensor<4xf32>
    %d2 = pipe.move %a3 over <3 to 2, number 2> : tensor<4xf32>
    %d1 = pipe.move %d2 over <2 to 1, number 1> : tensor<4xf32>
    %dagain = pipe.move %d2 over <2 to 0> : tensor<4xf32>
    %dx1 = tx.mul %d1, %y1s : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %d0 = pipe.move %dx1 over <1 to 0> : tensor<4xf32>
    %dy0 = tx.add %d0, %dagain : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %da0 = tx.mul %dy0, %x0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %da = tx.add %x3s, %da0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    train.yield %da : tensor<4xf32>
  }
  %sa = pipe.sum %da on [0, 3] : tensor<4xf32>
  return %loss, %sa : tensor<4xf32>, tensor<4xf32>
}
func.func @forward(%x: tensor<4xf32>) -> tensor<4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %ra = train.read @a : tensor<4xf32>
  %a = pipe.share %ra on [0, 3] : tensor<4xf32>
  %a0 = pipe.pin %a to 0 : tensor<4xf32>
  %y0 = tx.mul %x, %a0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %x1 = pipe.move %y0 over <0 to 1> : tensor<4xf32>
  %again = pipe.move %y0 over <0 to 2> : tensor<4xf32>
  %y1 = tx.exp %x1 : (tensor<4xf32>) -> tensor<4xf32>
  %x2 = pipe.move %y1 over <1 to 2, number 1> : tensor<4xf32>
  %y2 = tx.add %x2, %again : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %x3 = pipe.move %y2 over <2 to 3, number 2> : tensor<4xf32>
  %a3 = pipe.pin %a to 3 : tensor<4xf32>
  %y3 = tx.mul %x3, %a3 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y3 : tensor<4xf32>
}
}
