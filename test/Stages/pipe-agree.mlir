// RUN: partita-opt %s --pipe-agree | FileCheck %s

// What two stages share stands at one place on both, what whole cache lines hold first; a parameter on the last two stands behind
// what the middle one has already. Numbers are those of the tables, states without a parameter have none.
// CHECK: module attributes {
// CHECK-SAME: pipe.hyper = {decay = 1.000000e-01 : f64
// CHECK-SAME: pipe.parameters = [@first, @table, @w, @last]
// CHECK-SAME: pipe.states = [@table.m]
module attributes {pipe.stages = 3} {

// CHECK: train.parameter @first : tensor<3xf32> {pipe.offset = 8448 : i64, pipe.on = array<i64: 0, 1>}
train.parameter @first : tensor<3xf32> {pipe.on = array<i64: 0, 1>}
// CHECK: train.parameter @table : tensor<64x32xf32> {pipe.offset = 0 : i64, pipe.on = array<i64: 0, 1>}
train.parameter @table : tensor<64x32xf32> {pipe.on = array<i64: 0, 1>}
// CHECK: train.parameter @w : tensor<32x32xf32> {pipe.on = array<i64: 1>}
train.parameter @w : tensor<32x32xf32> {pipe.on = array<i64: 1>}
// CHECK: train.parameter @last : tensor<64xf32> {pipe.offset = 8192 : i64, pipe.on = array<i64: 1, 2>}
train.parameter @last : tensor<64xf32> {pipe.on = array<i64: 1, 2>}
train.state @scale : tensor<f32> = 1.0

}
