// RUN: partita-opt %s --offload-states=what=optimizer | FileCheck %s
// RUN: partita-opt %s --offload-states=what=parameters | FileCheck %s --check-prefix=NOTHING
// RUN: not partita-opt %s --offload-states=what=optimizer,moments 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: error: the host keeps nothing called 'moments'; known: optimizer, parameters, activations
// NOTHING-NOT: offload.

// CHECK: train.parameter @w : tensor<4x6xf32>{{$}}
train.parameter @w : tensor<4x6xf32>
// CHECK: train.state @w.m {{.*}} {offload.host}
train.state @w.m : tensor<4x6xf32> = 0.0 of @w "m"
// CHECK: train.state @w.v {{.*}} {offload.host}
train.state @w.v : tensor<4x6xf32> = 0.0 of @w "v"

// CHECK-LABEL: func @example
// CHECK: train.adamw {{.*}}offload.on_host
func.func @example(%g: tensor<4x6xf32>) {
  %w = train.read @w : tensor<4x6xf32>
  %m = train.read @w.m : tensor<4x6xf32>
  %v = train.read @w.v : tensor<4x6xf32>
  %rate = train.learning_rate : tensor<f32>
  %step = train.step_number : tensor<f32>
  %new, %newM, %newV = train.adamw %w, %g, %m, %v, %rate, %step {beta1 = 0.9, beta2 = 0.999, epsilon = 1.0e-8, decay = 0.0} : (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<f32>, tensor<f32>) -> (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>)
  train.write @w, %new : tensor<4x6xf32>
  train.write @w.m, %newM : tensor<4x6xf32>
  train.write @w.v, %newV : tensor<4x6xf32>
  return
}
