// RUN: partita-opt %s --pipe-agree --split-input-file | FileCheck %s

// CHECK: module attributes {pipe.hyper = {}, pipe.parameters = [@table, @w], pipe.stages = 2 : i64, pipe.states = []}
module attributes {pipe.stages = 2} {
// CHECK: train.parameter @table : tensor<64x32xf32> {pipe.offset = 0 : i64, pipe.on = array<i64: 0, 1>}
train.parameter @table : tensor<64x32xf32> {pipe.on = array<i64: 0, 1>}
// CHECK: train.parameter @w : tensor<32x32xf32> {pipe.on = array<i64: 1>}
train.parameter @w : tensor<32x32xf32> {pipe.on = array<i64: 1>}
func.func @forward() -> tensor<32x32xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %0 = train.read @w : tensor<32x32xf32>
  return %0 : tensor<32x32xf32>
}
}

// -----

// What fills whole cache lines stands first; @last, on the last two stages, after what the middle one has already. States of no
// parameter are on all stages, and have no number.
// CHECK: module attributes {
// CHECK-SAME: pipe.parameters = [@first, @table, @last]
// CHECK-SAME: pipe.states = [@table.m]
module attributes {pipe.stages = 3} {
// CHECK: train.parameter @first : tensor<3xf32> {pipe.offset = 16640 : i64, pipe.on = array<i64: 0, 1>}
train.parameter @first : tensor<3xf32> {pipe.on = array<i64: 0, 1>}
// CHECK: train.parameter @table : tensor<64x32xf32> {pipe.offset = 0 : i64, pipe.on = array<i64: 0, 1>}
train.parameter @table : tensor<64x32xf32> {pipe.on = array<i64: 0, 1>}
// CHECK: train.parameter @last : tensor<64xf32> {pipe.offset = 8192 : i64, pipe.on = array<i64: 1, 2>}
train.parameter @last : tensor<64xf32> {pipe.on = array<i64: 1, 2>}
// CHECK: train.state @table.m : tensor<64x32xf32> = {{.*}} {pipe.offset = 8448 : i64}
train.state @table.m : tensor<64x32xf32> = 0.0 of @table "m"
// CHECK: train.state @scale : tensor<f32> = {{.*}} {pipe.offset = 16656 : i64}
train.state @scale : tensor<f32> = 1.0
}
