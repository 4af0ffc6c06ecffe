// RUN: partita-opt %s --differentiate --split-input-file --verify-diagnostics

func.func @constant(%x: tensor<f32>) {
  // expected-error@+1 {{the loss depends on no trainable parameter}}
  train.minimize %x : tensor<f32>
  return
}

// -----

train.parameter @w : tensor<4xf32>
func.func @no_gradient() {
  %w = train.read @w : tensor<4xf32>
  // expected-error@+1 {{op 'tx.softmax_grad' has no gradient, and the loss depends on it}}
  %s = tx.softmax_grad %w, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %r = tx.reduce_sum %s [0] : tensor<4xf32> -> tensor<f32>
  train.minimize %r : tensor<f32>
  return
}

// -----

// Steps have gradient zero: nothing flows, and what nothing flows to is not trained.
train.parameter @w : tensor<4xf32>
func.func @steps() {
  %w = train.read @w : tensor<4xf32>
  %s = tx.sign %w : (tensor<4xf32>) -> tensor<4xf32>
  %r = tx.reduce_sum %s [0] : tensor<4xf32> -> tensor<f32>
  // expected-error@+1 {{the loss depends on no trainable parameter}}
  train.minimize %r : tensor<f32>
  return
}

// -----

// expected-warning@+1 {{parameter 'w' gets no gradient and is not trained: the loss depends on it through steps alone}}
train.parameter @w : tensor<4xf32>
func.func @steps_of_micro_batches(%x: tensor<2x4xf32>) {
  %w = train.read @w : tensor<4xf32>
  %s = train.accumulate (%i = %x) : (tensor<2x4xf32>) -> tensor<f32> {
    %y = tx.mul %i, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %c = tx.ceil %y : (tensor<4xf32>) -> tensor<4xf32>
    %r = tx.reduce_sum %c [0] : tensor<4xf32> -> tensor<f32>
    train.yield %r : tensor<f32>
  }
  // expected-error@+1 {{the loss depends on no trainable parameter}}
  train.minimize %s : tensor<f32>
  return
}

// -----

// expected-warning@+1 {{parameter 'still' and 1 more get no gradient and are not trained: the loss depends on them through steps alone (floor, round, sign, comparisons, indices), if at all; use --freeze 'still' if that is intended}}
train.parameter @still : tensor<4xf32>
train.parameter @w : tensor<4xf32>
train.parameter @limit : tensor<4xf32>
func.func @some() {
  %w = train.read @w : tensor<4xf32>
  %still = train.read @still : tensor<4xf32>
  %limit = train.read @limit : tensor<4xf32>
  %s = tx.round %still : (tensor<4xf32>) -> tensor<4xf32>
  %c = tx.less %w, %limit : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %y = tx.select %c, %w, %s : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %r = tx.reduce_sum %y [0] : tensor<4xf32> -> tensor<f32>
  train.minimize %r : tensor<f32>
  return
}

// -----

train.parameter @w : tensor<4xf32>
func.func @twice() {
  %w = train.read @w : tensor<4xf32>
  %r = tx.reduce_sum %w [0] : tensor<4xf32> -> tensor<f32>
  train.minimize %r : tensor<f32>
  // expected-error@+1 {{expected one train.minimize, at the function's top level}}
  train.minimize %r : tensor<f32>
  return
}

// -----

// The square of a sum over micro-batches is not the sum of their squares.
train.parameter @w : tensor<4xf32>
func.func @nonlinear(%x: tensor<2x4xf32>) {
  %w = train.read @w : tensor<4xf32>
  // expected-error@+1 {{the loss is not linear in what the micro-batches add up to}}
  %s = train.accumulate (%i = %x) : (tensor<2x4xf32>) -> tensor<f32> {
    %y = tx.mul %i, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %r = tx.reduce_sum %y [0] : tensor<4xf32> -> tensor<f32>
    train.yield %r : tensor<f32>
  }
  %q = tx.mul %s, %s : (tensor<f32>, tensor<f32>) -> tensor<f32>
  train.minimize %q : tensor<f32>
  return
}

// -----

train.parameter @w : tensor<2x4xf32>
func.func @batch() {
  %w = train.read @w : tensor<2x4xf32>
  // expected-error@+1 {{batch #0 depends on a trainable parameter; no gradient flows through batches}}
  %s = train.accumulate (%i = %w) : (tensor<2x4xf32>) -> tensor<f32> {
    %r = tx.reduce_sum %i [0] : tensor<4xf32> -> tensor<f32>
    train.yield %r : tensor<f32>
  }
  train.minimize %s : tensor<f32>
  return
}
