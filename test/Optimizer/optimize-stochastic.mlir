// RUN: partita-opt %s --optimize=stochastic-rounding=true | FileCheck %s
// RUN: partita-opt %s --optimize | FileCheck %s --check-prefix=NEAREST
// Each parameter is rounded with random numbers of its own; float32 needs none.
// CHECK: train.adamw {{.*}} {amp.stochastic = [[W:[0-9]+]] : i64
// CHECK-NOT: amp.stochastic = [[W]] :
// CHECK: train.adamw {{.*}} {amp.stochastic = {{[0-9]+}} : i64
// CHECK-NOT: amp.stochastic
// NEAREST-NOT: amp.stochastic
train.parameter @w : tensor<4xbf16>
train.parameter @v : tensor<4xbf16>
train.parameter @f : tensor<4xf32>
func.func @train_step(%gw: tensor<4xbf16>, %gv: tensor<4xbf16>, %gf: tensor<4xf32>) attributes {train.entry_point = #train.entry_point<train_step>, par.no_cotangents} {
  %w = train.read @w : tensor<4xbf16>
  %v = train.read @v : tensor<4xbf16>
  %f = train.read @f : tensor<4xf32>
  train.update @w, %w by %gw : tensor<4xbf16>, tensor<4xbf16>
  train.update @v, %v by %gv : tensor<4xbf16>, tensor<4xbf16>
  train.update @f, %f by %gf : tensor<4xf32>, tensor<4xf32>
  return
}
func.func @init() attributes {train.entry_point = #train.entry_point<init>} {
  %w = train.initial_value @w : tensor<4xbf16>
  train.write @w, %w : tensor<4xbf16>
  %v = train.initial_value @v : tensor<4xbf16>
  train.write @v, %v : tensor<4xbf16>
  %f = train.initial_value @f : tensor<4xf32>
  train.write @f, %f : tensor<4xf32>
  return
}
