// RUN: partita-opt %s --expand-conjugates --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @step
// CHECK-SAME: (%[[W:.*]]: tensor<4xf32>, %[[X:.*]]: tensor<4xf32, #par.place<[8 @dp]>>
// CHECK-NOT: par.f
// CHECK: %[[E:.*]] = tx.exp %[[W]]{{.*}} : (tensor<4xf32>) -> tensor<4xf32>
// CHECK: %[[R:.*]] = tx.reduce_sum
// CHECK: par.all_reduce %[[R]] over "dp" because "mean loss"{{.*}} : tensor<f32, #par.place<[], partial [dp]>> -> tensor<f32>
func.func @step(%w: tensor<4xf32>, %x: tensor<4xf32, #par.place<[8 @dp]>>) -> tensor<f32> attributes {par.no_cotangents} {
  %f = par.f %w over "dp" : tensor<4xf32> -> tensor<4xf32, #par.place<[4], replicated [dp]>>
  %e = tx.exp %f : (tensor<4xf32, #par.place<[4], replicated [dp]>>) -> tensor<4xf32, #par.place<[4], replicated [dp]>>
  %r = tx.reduce_sum %x [0] : tensor<4xf32, #par.place<[8 @dp]>> -> tensor<f32, #par.place<[], partial [dp]>>
  %g = par.g %r over "dp" : tensor<f32, #par.place<[], partial [dp]>> -> tensor<f32> loc("mean loss")
  return %g : tensor<f32>
}

// -----

// expected-error@+1 {{is not differentiated yet: its conjugates are still needed}}
func.func @early(%w: tensor<4xf32>) {
  return
}
