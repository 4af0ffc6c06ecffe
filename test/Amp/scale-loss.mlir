// RUN: partita-opt %s --scale-loss="scale=0" | FileCheck %s
// RUN: partita-opt %s --scale-loss="scale=1024" | FileCheck %s --check-prefix=FIXED
// RUN: partita-opt %s --scale-loss="scale=0 consecutive=true" | FileCheck %s --check-prefix=CONSECUTIVE
// RUN: partita-opt %s --scale-loss | FileCheck %s --check-prefix=NONE
// RUN: partita-opt %s --scale-loss="scale=0" --differentiate --optimize="kind=sgd clip=1" | FileCheck %s --check-prefix=STEP

// CHECK-DAG: train.state @loss_scale : tensor<f32> = 6.553600e+04
// CHECK-DAG: train.state @loss_scale.last_overflow : tensor<i64> = -1.000000e+00
// CHECK-DAG: train.state @loss_scale.hysteresis : tensor<i64> = 2.000000e+00
// CHECK-LABEL: func.func @train_step
// CHECK: train.minimize %{{.*}} {amp.scaled = {consecutive = false, dynamic = true, hysteresis = 2 : i64, minimum = 1.000000e+00 : f64, window = 1000 : i64}}
// CHECK-LABEL: func.func @init
// CHECK: train.write @loss_scale,
// CHECK: train.write @loss_scale.skipped,
// FIXED: train.state @loss_scale : tensor<f32> = 1.024000e+03
// FIXED: amp.scaled = {{.*}}dynamic = false
// CONSECUTIVE: amp.scaled = {consecutive = true
// NONE-NOT: loss_scale

// The loss's cotangent is the scale that the step begins with, by which norm and gradients are divided; the update counts where the
// norm is finite; the scale is updated last.
// STEP-LABEL: func.func @train_step
// STEP: train.read @loss_scale
// STEP: %[[NORM:.*]] = train.global_norm
// STEP: %[[SCALE:.*]] = train.read @loss_scale
// STEP: %[[OWN:.*]] = amp.unscale %[[NORM]] by %[[SCALE]]
// STEP: %[[CLIP:.*]] = train.clip %[[OWN]]
// STEP: %[[BY:.*]] = amp.unscale %[[CLIP]] by %[[SCALE]]
// STEP: %[[FINITE:.*]] = amp.all_finite %[[OWN]]
// STEP: train.sgd %{{.*}}, %{{.*}}, %{{.*}}, %[[BY]], %[[FINITE]]
// STEP: %[[NEXT:[a-z_]+]], %{{.*}} = amp.update_scale %[[SCALE]], {{.*}}, %[[FINITE]]
// STEP: train.write @loss_scale, %[[NEXT]]
train.parameter @w : tensor<4xf32>
func.func @train_step(%x: tensor<4xf32>) attributes {train.entry_point = #train.entry_point<train_step>} {
  %w = train.read @w : tensor<4xf32>
  %y = tx.mul %w, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %loss = tx.reduce_sum %y [0] : tensor<4xf32> -> tensor<f32>
  train.minimize %loss : tensor<f32>
  return
}
func.func @init() attributes {train.entry_point = #train.entry_point<init>} {
  %w = train.initial_value @w : tensor<4xf32>
  train.write @w, %w : tensor<4xf32>
  return
}
