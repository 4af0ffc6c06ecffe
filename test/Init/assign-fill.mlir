// RUN: partita-opt %s --assign-fill | FileCheck %s

// By use, not by name: the names here say the opposite of what the parameters are.

// CHECK: train.parameter @bias : tensor<4x8xf32> fill(<0.000000e+00, normal 2.000000e-02>)
train.parameter @bias : tensor<4x8xf32>
// CHECK: train.parameter @table : tensor<8xf32> fill(<1.000000e+00>)
train.parameter @table : tensor<8xf32>
// CHECK: train.parameter @weight : tensor<8xf32> fill(<0.000000e+00>)
train.parameter @weight : tensor<8xf32>
// A scale that is not raised yet: a vector that is broadcast and multiplied.
// CHECK: train.parameter @decomposed : tensor<8xf32> fill(<1.000000e+00>)
train.parameter @decomposed : tensor<8xf32>
// What is given stays.
// CHECK: train.parameter @given : tensor<8xf32> fill(<3.000000e+00>)
train.parameter @given : tensor<8xf32> fill(<3.0>)
// A scale per head, a bias with a dimension of size one, the row before an image's patches, positions, a matrix that
// a weight norm scales, and a bias times a constant.
// CHECK: train.parameter @per_head : tensor<2x8xf32> fill(<1.000000e+00>)
train.parameter @per_head : tensor<2x8xf32>
// CHECK: train.parameter @row_bias : tensor<1x1x8xf32> fill(<0.000000e+00>)
train.parameter @row_bias : tensor<1x1x8xf32>
// CHECK: train.parameter @row : tensor<1x1x8xf32> fill(<0.000000e+00, normal 2.000000e-02>)
train.parameter @row : tensor<1x1x8xf32>
// CHECK: train.parameter @positions : tensor<1x2x8xf32> fill(<0.000000e+00, normal 2.000000e-02>)
train.parameter @positions : tensor<1x2x8xf32>
// CHECK: train.parameter @normed : tensor<8x8xf32> fill(<0.000000e+00, normal 2.000000e-02>)
train.parameter @normed : tensor<8x8xf32>
// CHECK: train.parameter @scaled_bias : tensor<8xf32> fill(<0.000000e+00>)
train.parameter @scaled_bias : tensor<8xf32>

func.func @forward(%x: tensor<2x4xf32>) -> tensor<2x8xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %w = train.read @bias : tensor<4x8xf32>
  %s = train.read @table : tensor<8xf32>
  %b = train.read @weight : tensor<8xf32>
  %d = train.read @decomposed : tensor<8xf32>
  %y = tx.matmul %x, %w : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  %n, %mean, %rstd = tx.layer_norm %y, %s, %b eps 1.0e-5 : (tensor<2x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x8xf32>, tensor<2xf32>, tensor<2xf32>)
  %r = tx.broadcast %d : tensor<8xf32> -> tensor<2x8xf32>
  %m = tx.mul %n, %r : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %m : tensor<2x8xf32>
}

func.func @others(%x: tensor<3x2x8xf32>, %norms: tensor<8x8xf32>) -> (tensor<3x3x8xf32>, tensor<8x8xf32>) {
  %half = tx.constant dense<0.5> : tensor<8xf32> : tensor<8xf32>
  %h = train.read @per_head : tensor<2x8xf32>
  %b = train.read @row_bias : tensor<1x1x8xf32>
  %r = train.read @row : tensor<1x1x8xf32>
  %p = train.read @positions : tensor<1x2x8xf32>
  %w = train.read @normed : tensor<8x8xf32>
  %s = train.read @scaled_bias : tensor<8xf32>
  %hh = tx.broadcast %h : tensor<2x8xf32> -> tensor<3x2x8xf32>
  %bb = tx.broadcast %b : tensor<1x1x8xf32> -> tensor<3x2x8xf32>
  %rr = tx.broadcast %r : tensor<1x1x8xf32> -> tensor<3x1x8xf32>
  %pp = tx.broadcast %p : tensor<1x2x8xf32> -> tensor<3x2x8xf32>
  %sh = tx.mul %s, %half : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %ss = tx.broadcast %sh : tensor<8xf32> -> tensor<3x2x8xf32>
  %0 = tx.mul %x, %hh : (tensor<3x2x8xf32>, tensor<3x2x8xf32>) -> tensor<3x2x8xf32>
  %1 = tx.add %0, %bb : (tensor<3x2x8xf32>, tensor<3x2x8xf32>) -> tensor<3x2x8xf32>
  %2 = tx.add %1, %pp : (tensor<3x2x8xf32>, tensor<3x2x8xf32>) -> tensor<3x2x8xf32>
  %3 = tx.add %2, %ss : (tensor<3x2x8xf32>, tensor<3x2x8xf32>) -> tensor<3x2x8xf32>
  %4 = tx.concat %rr, %3 along 1 : (tensor<3x1x8xf32>, tensor<3x2x8xf32>) -> tensor<3x3x8xf32>
  %5 = tx.mul %w, %norms : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %4, %5 : tensor<3x3x8xf32>, tensor<8x8xf32>
}
