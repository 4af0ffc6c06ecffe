// RUN: partita-opt %s --optimize="weight-decay=0.1 betas=0.9,0.95" | FileCheck %s
// RUN: partita-opt %s --optimize="kind=sgd weight-decay=0.1" | FileCheck %s --check-prefix=SGD
// RUN: not partita-opt %s --optimize=kind=lion 2>&1 | FileCheck %s --check-prefix=KIND
// RUN: not partita-opt %s --optimize=betas=0.9,1.0 2>&1 | FileCheck %s --check-prefix=BETAS

// KIND: error: optimizer 'lion' is unknown; known: adamw, sgd
// BETAS: error: betas: expected two numbers in [0, 1)

train.parameter @w : tensor<4x6xf32>
train.parameter @b : tensor<6xf32>

// CHECK-DAG: train.state @w.m : tensor<4x6xf32> = 0.000000e+00 of @w "m"
// CHECK-DAG: train.state @w.v : tensor<4x6xf32> = 0.000000e+00 of @w "v"
// CHECK-DAG: train.state @b.m : tensor<6xf32> = 0.000000e+00 of @b "m"
// The states' first values stand behind their parameter's.
// CHECK-LABEL: func.func @init
// CHECK: train.write @w, %{{.*}} : tensor<4x6xf32>
// CHECK-NEXT: %[[M0:.*]] = train.initial_value @w.m : tensor<4x6xf32>
// CHECK-NEXT: train.write @w.m, %[[M0]]
// CHECK-NEXT: %[[V0:.*]] = train.initial_value @w.v : tensor<4x6xf32>
// CHECK-NEXT: train.write @w.v, %[[V0]]
// CHECK: train.write @b,
// CHECK: train.write @b.m
// CHECK: train.write @b.v
// CHECK-LABEL: func.func @train_step
// CHECK-SAME: (%[[GW:.*]]: tensor<4x6xf32>, %[[GB:.*]]: tensor<6xf32>)
// CHECK: %[[M:.*]] = train.read @w.m
// CHECK: %[[V:.*]] = train.read @w.v
// CHECK: %[[P:.*]], %[[M1:.*]], %[[V1:.*]] = train.adamw %{{.*}}, %[[GW]], %[[M]], %[[V]], %{{.*}}, %{{.*}} {beta1 = 9.000000e-01 : f64, beta2 = {{0.949|9.5}}{{.*}}, decay = 1.000000e-01 : f64
// CHECK: train.write @w, %[[P]]
// CHECK: train.write @w.m, %[[M1]]
// CHECK: train.write @w.v, %[[V1]]
// Vectors do not decay.
// CHECK: train.adamw {{.*}} decay = 0.000000e+00 : f64
// CHECK-NOT: train.update

// SGD-NOT: train.state
// SGD: train.sgd {{.*}} {decay = 1.000000e-01 : f64}
// SGD: train.sgd {{.*}} {decay = 0.000000e+00 : f64}
func.func @init() {
  %w = train.initial_value @w : tensor<4x6xf32>
  train.write @w, %w : tensor<4x6xf32>
  %b = train.initial_value @b : tensor<6xf32>
  train.write @b, %b : tensor<6xf32>
  return
}
func.func @train_step(%gw: tensor<4x6xf32>, %gb: tensor<6xf32>) attributes {par.no_cotangents} {
  %w = train.read @w : tensor<4x6xf32>
  %b = train.read @b : tensor<6xf32>
  train.update @w, %w by %gw : tensor<4x6xf32>, tensor<4x6xf32>
  train.update @b, %b by %gb : tensor<6xf32>, tensor<6xf32>
  return
}
