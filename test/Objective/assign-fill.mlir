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

func.func @forward(%x: tensor<2x4xf32>) -> tensor<2x8xf32> {
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
