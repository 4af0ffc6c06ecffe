// Which output `auto` takes for a loss, and which it does not.
// RUN: partita-opt %s --split-input-file --objective | FileCheck %s
// RUN: partita-opt %s --split-input-file --objective=kind=auto:scores | FileCheck %s --check-prefix=NAMED

// It alone depends on the labels; the total is taken and no part of it, and not the number that none compares.
// CHECK: train.objective = "output of 'total' (auto: it alone depends on input 'wanted')"
// CHECK-LABEL: func.func @train_step(
// CHECK-NOT: "labels"
// CHECK: train.minimize
// NAMED: train.objective = "classification of 'scores' (auto: it has one vector of scores a sample)"
func.func @forward(%x: tensor<4x2xf32> {train.name = "x"}, %wanted: tensor<4x2xf32> {train.name = "wanted"})
    -> (tensor<f32> {train.name = "size"}, tensor<f32> {train.name = "part"}, tensor<f32> {train.name = "total"}, tensor<4x2xf32> {train.name = "scores"}) attributes {train.entry_point = #train.entry_point<forward>} {
  %w = train.read @w : tensor<2x2xf32>
  %s = tx.matmul %x, %w : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %size = tx.reduce_sum %s [0, 1] : tensor<4x2xf32> -> tensor<f32>
  %d = tx.sub %s, %wanted : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  %q = tx.mul %d, %d : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  %part = tx.reduce_sum %q [0, 1] : tensor<4x2xf32> -> tensor<f32>
  %total = tx.add %part, %size : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %size, %part, %total, %s : tensor<f32>, tensor<f32>, tensor<f32>, tensor<4x2xf32>
}
train.parameter @w : tensor<2x2xf32>

// -----

// Labels that the scores depend on too, as where a decoder reads them.
// CHECK: train.objective = "output of 'loss' (auto: the model compares its scores with an input's labels itself)"
// NAMED: train.objective = "masked of 'scores'
func.func @forward(%wanted: tensor<4x2xi64> {train.name = "wanted"})
    -> (tensor<4x2x8xf32> {train.name = "scores"}, tensor<f32> {train.name = "loss"}) attributes {train.entry_point = #train.entry_point<forward>} {
  %w = train.read @w : tensor<8x2xf32>
  %x = tx.cast %wanted : tensor<4x2xi64> -> tensor<4x2xf32>
  %r = tx.reshape %x : tensor<4x2xf32> -> tensor<4x2x1xf32>
  %h = tx.broadcast %r : tensor<4x2x1xf32> -> tensor<4x2x2xf32>
  %s = tx.matmul_nt %h, %w : (tensor<4x2x2xf32>, tensor<8x2xf32>) -> tensor<4x2x8xf32>
  %each, %lse = tx.cross_entropy %s, %wanted ignore -100 : (tensor<4x2x8xf32>, tensor<4x2xi64>) -> (tensor<4x2xf32>, tensor<4x2xf32>)
  %loss = tx.reduce_sum %each [0, 1] : tensor<4x2xf32> -> tensor<f32>
  return %s, %loss : tensor<4x2x8xf32>, tensor<f32>
}
train.parameter @w : tensor<8x2xf32>

// -----

// A number that only the scores' inputs and no parameter make is no loss; one that stands alone is.
// CHECK: train.objective = "output of 'scores' (auto: the model has no scores, but this one number)"
// NAMED: train.objective = "output of 'scores' (auto: the model has no scores, but this one number)"

func.func @forward(%x: tensor<4x2xf32> {train.name = "x"}) -> (tensor<f32> {train.name = "fixed"}, tensor<f32> {train.name = "scores"}) attributes {train.entry_point = #train.entry_point<forward>} {
  %w = train.read @w : tensor<2x2xf32>
  %fixed = tx.reduce_sum %x [0, 1] : tensor<4x2xf32> -> tensor<f32>
  %s = tx.matmul %x, %w : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %one = tx.reduce_sum %s [0, 1] : tensor<4x2xf32> -> tensor<f32>
  return %fixed, %one : tensor<f32>, tensor<f32>
}
train.parameter @w : tensor<2x2xf32>
