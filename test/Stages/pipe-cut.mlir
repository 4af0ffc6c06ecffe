// RUN: partita-opt %s --pipe-cut | FileCheck %s

// CHECK: module {
module attributes {pipe.stages = 2} {

// CHECK-NEXT: module attributes {pipe.count = 2 : i64, pipe.stage = 0 : i64} {
// CHECK-NEXT: train.parameter @a : tensor<4x4xf32>{{$}}
// CHECK-NEXT: train.parameter @both : tensor<4xf32>{{$}}
// CHECK-NEXT: train.state @a.m : tensor<4x4xf32>
// CHECK-NEXT: train.state @scale : tensor<f32>
train.parameter @a : tensor<4x4xf32> {pipe.on = array<i64: 0>}
train.parameter @b : tensor<4x4xf32> {pipe.on = array<i64: 1>}
train.parameter @both : tensor<4xf32> {pipe.on = array<i64: 0, 1>}
train.state @a.m : tensor<4x4xf32> = 0.0 of @a "m"
train.state @b.m : tensor<4x4xf32> = 0.0 of @b "m"
train.state @scale : tensor<f32> = 1.0

// CHECK-LABEL: func.func @forward
// CHECK-SAME: (%[[X:.*]]: tensor<2x4xf32>) attributes {train.entry_point = #train.entry_point<forward>} {
// CHECK-NEXT: %[[W0:.*]] = train.read @a
// CHECK-NEXT: %[[Y:.*]] = tx.matmul %[[X]], %[[W0]]
// CHECK-NEXT: pipe.send %[[Y]] over <0 to 1>
// CHECK-NEXT: return
func.func @forward(%x: tensor<2x4xf32>) -> tensor<2x4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %w0 = train.read @a : tensor<4x4xf32>
  %w1 = train.read @b : tensor<4x4xf32>
  %0 = tx.matmul %x, %w0 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %1 = pipe.move %0 over <0 to 1> : tensor<2x4xf32>
  %2 = tx.matmul %1, %w1 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return %2 : tensor<2x4xf32>
}

// The gradient of a shared parameter: each stage has a term, and the sum is complete on both. A stage without a term adds zeros.
// CHECK-LABEL: func.func @shared
// CHECK: %[[G:.*]] = tx.exp
// CHECK: %[[S:.*]] = pipe.sum %[[G]] on [0, 1]
// CHECK: %[[H:.*]] = pipe.sum %[[G]] on [0, 1]
// CHECK: train.write @both, %[[S]]
// CHECK: train.read @scale
// CHECK: return %[[H]]
func.func @shared() -> tensor<4xf32> {
  %w = train.read @both : tensor<4xf32>
  %0 = pipe.share %w on [0, 1] : tensor<4xf32>
  %1 = pipe.pin %0 to 0 : tensor<4xf32>
  %2 = pipe.pin %0 to 1 : tensor<4xf32>
  %g1 = tx.exp %1 : (tensor<4xf32>) -> tensor<4xf32>
  %g2 = tx.tanh %2 : (tensor<4xf32>) -> tensor<4xf32>
  %g = tx.add %g1, %g2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %sum = pipe.sum %g on [0, 1] : tensor<4xf32>
  %other = pipe.sum %g1 on [0, 1] : tensor<4xf32>
  train.write @both, %sum : tensor<4xf32>
  %scale = train.read @scale : tensor<f32>
  train.write @scale, %scale : tensor<f32>
  return %other : tensor<4xf32>
}

// Each stage has its own sums and saved values.
// CHECK-LABEL: func.func @loop
// CHECK: %[[DW:.*]] = train.accumulate (%[[I:.*]] = %{{.*}}) : (tensor<3x2x4xf32>) -> tensor<2x4xf32> {
// CHECK-NEXT: %[[Y:.*]] = tx.matmul %[[I]]
// CHECK-NEXT: %[[Z:.*]] = tx.exp %[[Y]]
// CHECK-NEXT: pipe.send %[[Z]] over <0 to 1>
// CHECK-NEXT: train.yield saves %[[Z]] : tensor<2x4xf32>
// CHECK-NEXT: } backward (%{{.*}}, %[[SAVED:.*]]) {
// CHECK-NEXT: %[[D:.*]] = pipe.recv over <1 to 0>
// CHECK-NEXT: %[[DY:.*]] = tx.mul %[[D]], %[[SAVED]]
// CHECK-NEXT: train.yield %[[DY]] : tensor<2x4xf32>
// CHECK: return %[[DW]]
func.func @loop(%xs: tensor<3x2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %w0 = train.read @a : tensor<4x4xf32>
  %w1 = train.read @b : tensor<4x4xf32>
  %loss, %d = train.accumulate (%x = %xs) : (tensor<3x2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
    %y = tx.matmul %x, %w0 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %z = tx.exp %y : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %m = pipe.move %z over <0 to 1> : tensor<2x4xf32>
    %v = tx.matmul %m, %w1 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    train.yield %v : tensor<2x4xf32> saves %z, %v : tensor<2x4xf32>, tensor<2x4xf32>
  } backward (%again, %zs, %vs) {
    %dm = tx.tanh %vs : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %dz = pipe.move %dm over <1 to 0> : tensor<2x4xf32>
    %dy = tx.mul %dz, %zs : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    train.yield %dy : tensor<2x4xf32>
  }
  return %loss, %d : tensor<2x4xf32>, tensor<2x4xf32>
}

// For squares of several stages' values, each stage has its own; a value that both have counts on the first.
// CHECK-LABEL: func.func @squares
// CHECK: %[[OWN:.*]] = train.square_sum %{{.*}}, %{{.*}} : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<2xf64>
// CHECK: %[[ALL:.*]] = tx.concat {{.*}} along 0
// CHECK: pipe.sum %[[ALL]] on [0, 1] {pipe.number = 0 : i64} : tensor<3xf64>
func.func @squares() -> tensor<f32> {
  %w0 = train.read @a : tensor<4x4xf32>
  %w1 = train.read @b : tensor<4x4xf32>
  %w2 = train.read @both : tensor<4xf32>
  %0 = train.square_sum %w0, %w1, %w2 : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4xf32>) -> tensor<3xf64>
  %1 = pipe.sum %0 on [0, 1] : tensor<3xf64>
  %2 = train.norm %1 : (tensor<3xf64>) -> tensor<f32>
  return %2 : tensor<f32>
}

// CHECK: module attributes {pipe.count = 2 : i64, pipe.stage = 1 : i64} {
// CHECK-NEXT: train.parameter @b
// CHECK-NEXT: train.parameter @both
// CHECK-NEXT: train.state @b.m
// CHECK-NEXT: train.state @scale
// CHECK-LABEL: func.func @forward
// CHECK-SAME: (%{{.*}}: tensor<2x4xf32>) -> tensor<2x4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
// CHECK: %[[W1:.*]] = train.read @b
// CHECK-NEXT: %[[R:.*]] = pipe.recv over <0 to 1>
// CHECK-NEXT: %[[V:.*]] = tx.matmul %[[R]], %[[W1]]
// CHECK-NEXT: return %[[V]]
// CHECK-LABEL: func.func @shared
// CHECK: %[[G:.*]] = tx.tanh
// CHECK: pipe.sum %[[G]] on [0, 1]
// CHECK: %[[ZERO:.*]] = tx.constant dense<0.000000e+00>
// CHECK: pipe.sum %[[ZERO]] on [0, 1]
// CHECK-LABEL: func.func @loop
// CHECK: train.yield %[[V:[^ ]*]] : tensor<2x4xf32> saves %[[V]] : tensor<2x4xf32>
// CHECK-LABEL: func.func @squares
// CHECK: train.square_sum %{{.*}} : (tensor<4x4xf32>) -> tensor<1xf64>
}
