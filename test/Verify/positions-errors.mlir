// Up to the cut, the phase after which a value is not where it is needed says so.
// RUN: partita-opt %s --split-input-file --verify-diagnostics --verify-phase=after=stages

module attributes {pipe.axis = 0, pipe.stages = 2} {
train.parameter @a : tensor<4xf32> {pipe.on = array<i64: 0>}
train.parameter @b : tensor<4xf32> {pipe.on = array<i64: 1>}
func.func @f() -> tensor<4xf32> {
  %a = train.read @a : tensor<4xf32>
  %b = train.read @b : tensor<4xf32>
  %c = pipe.move %a over <0 to 1> : tensor<4xf32>
  %0 = tx.mul %c, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // expected-error@+1 {{'tx.mul' has no stage in common: operand 0 is on stage 0, operand 1 is on stage 1}}
  %1 = tx.mul %a, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
}

// -----

// The norm of gradients of all stages is everywhere; expand-norms sums it up.
module attributes {pipe.axis = 0, pipe.stages = 2} {
train.parameter @a : tensor<4xf32> {pipe.on = array<i64: 0>}
train.parameter @b : tensor<4xf32> {pipe.on = array<i64: 1>}
func.func @norm() -> tensor<f32> {
  %a = train.read @a : tensor<4xf32>
  %b = train.read @b : tensor<4xf32>
  %0 = train.global_norm %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  %1 = train.global_norm %0 : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @of_parts() -> tensor<f32> {
  %a = train.read @a : tensor<4xf32>
  %b = train.read @b : tensor<4xf32>
  %0 = tx.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // expected-error@+1 {{'train.global_norm' has no stage in common: operand 0 is in parts on stages 0, 1}}
  %1 = train.global_norm %0 : (tensor<4xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}
}
