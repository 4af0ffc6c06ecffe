// RUN: partita-opt %s --optimize="weight-decay=0.1 betas=0.9,0.95" | FileCheck %s
// RUN: partita-opt %s --optimize="kind=sgd weight-decay=0.1" | FileCheck %s --check-prefix=SGD
// RUN: not partita-opt %s --optimize=kind=rmsprop 2>&1 | FileCheck %s --check-prefix=KIND
// RUN: partita-opt %s --optimize="kind=sgd momentum=0.5 nesterov=true" | FileCheck %s --check-prefix=MOMENTUM
// RUN: partita-opt %s --optimize="kind=lion weight-decay=0.1 groups=w:weight-decay=0:lr-scale=0.5,?:weight-decay=0.2" | FileCheck %s --check-prefix=LION
// RUN: partita-opt %s --optimize="kind=adagrad epsilon=1e-7 clip=2" | FileCheck %s --check-prefix=CLIP
// RUN: partita-opt %s --optimize=no-bias-correction=true | FileCheck %s --check-prefix=UNCORRECTED
// RUN: not partita-opt %s --optimize=betas=0.9,1.0 2>&1 | FileCheck %s --check-prefix=BETAS
// RUN: not partita-opt %s --optimize=lamb-bounds=0,1 2>&1 | FileCheck %s --check-prefix=BOUNDS
// BOUNDS: error: lamb-bounds: optimizer 'adamw' has no trust ratio
// RUN: partita-opt %s --optimize="kind=onebit-lamb weight-decay=0.1 freeze-step=20 lamb-bounds=0.1,5 coeff-beta=0.95 factor-bounds=0.25,2 factor-threshold=0.2 clip=2" | FileCheck %s --check-prefix=FROZEN
// RUN: not partita-opt %s --optimize=coeff-beta=0.5 2>&1 | FileCheck %s --check-prefix=NOBETA
// RUN: not partita-opt %s --optimize=factor-bounds=1,2 2>&1 | FileCheck %s --check-prefix=NOFACTOR
// RUN: not partita-opt %s --optimize="kind=onebit-lamb factor-bounds=0,2" 2>&1 | FileCheck %s --check-prefix=FACTOR
// RUN: not partita-opt %s --optimize="kind=onebit-lamb factor-threshold=2" 2>&1 | FileCheck %s --check-prefix=THRESHOLD
// RUN: not partita-opt %s --optimize="kind=onebit-lamb coeff-beta=1" 2>&1 | FileCheck %s --check-prefix=KEEPS
// RUN: partita-opt %s --optimize="kind=onebit-lamb freeze-step=5" 2>&1 | FileCheck %s --check-prefix=SHORT
// NOBETA: error: coeff-beta: optimizer 'adamw' freezes no ratio
// NOFACTOR: error: factor-bounds: optimizer 'adamw' freezes no ratio
// FACTOR: error: factor-bounds: expected two numbers, 0 < MIN <= MAX
// THRESHOLD: error: factor-threshold: '2', expected a number from 0 to 1
// KEEPS: error: coeff-beta: 1 keeps the mean of ratios at 0; expected less
// SHORT: warning: the running mean of ratios begins with 0 and keeps 0.9{{0*}} of itself in a step: after 5 steps of warm-up it is 41 % of their mean, and scales all later updates; use a larger freeze-step or a smaller coeff-beta

// KIND: error: optimizer 'rmsprop' is unknown; known: adagrad, adam, adamw, lamb, lion, momentum, onebit_adam, onebit_lamb, sgd, zero_one_adam
// BETAS: error: betas: expected two numbers in [0, 1)

train.parameter @w : tensor<4x6xf32>
train.parameter @b : tensor<6xf32>

// CHECK-DAG: train.state @w.m : tensor<4x6xf32> = 0.000000e+00 of @w "m"
// CHECK-DAG: train.state @w.v : tensor<4x6xf32> = 0.000000e+00 of @w "v"
// CHECK-DAG: train.state @b.m : tensor<6xf32> = 0.000000e+00 of @b "m"
// CHECK-LABEL: func.func @train_step
// CHECK-SAME: (%[[GW:.*]]: tensor<4x6xf32>, %[[GB:.*]]: tensor<6xf32>)
// CHECK: %[[M:.*]] = train.read @w.m
// CHECK: %[[V:.*]] = train.read @w.v
// CHECK: %[[P:.*]], %[[S:.*]]:2 = train.adamw %{{.*}}, %[[GW]], %[[M]], %[[V]], %{{.*}}, %{{.*}} {beta1 = 9.000000e-01{{.*}} : f64, beta2 = {{0.949|9.5}}{{.*}}, decay = 1.000000e-01 : f64
// CHECK: train.write @w, %[[P]]
// CHECK: train.write @w.m, %[[S]]#0
// CHECK: train.write @w.v, %[[S]]#1
// Vectors do not decay.
// CHECK: train.adamw {{.*}} decay = 0.000000e+00{{.*}} : f64
// CHECK-NOT: train.update
// The states' first values stand after their parameter's.
// CHECK-LABEL: func.func @init
// CHECK: train.write @w, %{{.*}} : tensor<4x6xf32>
// CHECK-NEXT: %[[M0:.*]] = train.initial_value @w.m{{.*}} : tensor<4x6xf32>
// CHECK-NEXT: train.write @w.m, %[[M0]]
// CHECK-NEXT: %[[V0:.*]] = train.initial_value @w.v{{.*}} : tensor<4x6xf32>
// CHECK-NEXT: train.write @w.v, %[[V0]]
// CHECK: train.write @b,
// CHECK: train.write @b.m
// CHECK: train.write @b.v

// UNCORRECTED: train.adamw {{.*}} bias_correction = 0.000000e+00
// SGD-NOT: train.state
// SGD: train.sgd {{.*}} {decay = 1.000000e-01{{.*}} : f64}
// SGD: train.sgd {{.*}} {decay = 0.000000e+00{{.*}} : f64}
// MOMENTUM: train.state @w.m
// MOMENTUM: train.momentum {{.*}} momentum = 5.000000e-01{{.*}} : f64, nesterov = 1.000000e+00 : f64
// The first group that matches counts.
// LION: train.lion {{.*}} {beta1 = 9.000000e-01{{.*}} : f64, beta2 = 0.98{{9*}} : f64, decay = 0.000000e+00 : f64, rate_scale = 5.000000e-01 : f64}
// LION: train.lion {{.*}} decay = 2.000000e-01{{.*}} : f64}
// One norm of all gradients, and all updates after it.
// CLIP: %[[NORM:.*]] = train.global_norm %arg0, %arg1 of [@w, @b] :
// CLIP-NEXT: %[[SCALE:.*]] = train.clip %[[NORM]] {max_norm = 2.000000e+00{{.*}} : f64}
// CLIP: train.adagrad %{{.*}}, %arg0, %{{.*}}, %{{.*}}, %[[SCALE]] {decay = 0.000000e+00{{.*}} : f64, epsilon = 9.9999999999999995E-8 : f64}
// CLIP: train.adagrad %{{.*}}, %arg1, %{{.*}}, %{{.*}}, %[[SCALE]]
// 1-bit LAMB has two scalar states of each parameter, whose first values are 0 and 1.
// FROZEN-DAG: train.state @w.fresh : tensor<4x6xf32> = 0.000000e+00 of @w "fresh"
// FROZEN-DAG: train.state @w.coefficient : tensor<f32> = 0.000000e+00 of @w "coefficient"
// FROZEN-DAG: train.state @w.factor : tensor<f32> = 1.000000e+00 of @w "factor"
// FROZEN-LABEL: func.func @train_step
// FROZEN: %[[SCALE:.*]] = train.clip
// FROZEN: %[[C:.*]] = train.read @w.coefficient : tensor<f32>
// FROZEN: %[[F:.*]] = train.read @w.factor : tensor<f32>
// FROZEN: %[[R:.*]], %[[C1:.*]], %[[F1:.*]] = train.frozen_trust_ratio %{{.*}}, %arg0, %[[M:.*]], %[[V:.*]], %[[N:.*]], %{{.*}}, %[[SCALE]] with %[[C]], %[[F]] {coeff_beta = 0.94{{9*}}6{{.*}}factor_max = 2.0{{.*}}factor_min = 2.500000e-01{{.*}}factor_threshold = 2.0{{.*}}freeze = 2.000000e+01{{.*}}least = 1.0{{.*}}most = 5.0
// FROZEN-NEXT: train.write @w.coefficient, %[[C1]]
// FROZEN-NEXT: train.write @w.factor, %[[F1]]
// FROZEN: train.onebit_lamb %{{.*}}, %arg0, %[[M]], %[[V]], %[[N]], %{{.*}}, %{{.*}}, %[[R]], %[[SCALE]]
func.func @train_step(%gw: tensor<4x6xf32>, %gb: tensor<6xf32>) attributes {train.entry_point = #train.entry_point<train_step>, par.no_cotangents} {
  %w = train.read @w : tensor<4x6xf32>
  %b = train.read @b : tensor<6xf32>
  train.update @w, %w by %gw : tensor<4x6xf32>, tensor<4x6xf32>
  train.update @b, %b by %gb : tensor<6xf32>, tensor<6xf32>
  return
}
func.func @init() attributes {train.entry_point = #train.entry_point<init>} {
  %w = train.initial_value @w : tensor<4x6xf32>
  train.write @w, %w : tensor<4x6xf32>
  %b = train.initial_value @b : tensor<6xf32>
  train.write @b, %b : tensor<6xf32>
  return
}
