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
