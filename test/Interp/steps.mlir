// Parameters, states, micro-batches and updates over two steps.
// RUN: partita-interp %s --entry train_step --times 2 --lr 0.5 --inputs %S/Inputs/steps.txt | FileCheck %s
// RUN: partita-interp %s --entry adam --times 2 --lr 0.5 | FileCheck %s --check-prefix=ADAM
// RUN: partita-interp %s --entry caller | FileCheck %s --check-prefix=CALL

train.parameter @w : tensor<2xf32> fill(<1.0>)
train.state @m : tensor<2xf32> = 0.0
train.state @v : tensor<2xf32> = 0.0

// Two micro-batches a step; labels -1 do not count: 3 of 4, then 4. Gradient and loss are the sum of x:
// 1 + 2 + 3 + 4 and 5 + 6 + 7 + 8, over the count; w falls by half of it each time.
// CHECK: result 0: = 6.5
// CHECK-NEXT: gradient w: 2 = [3, 3.5]
// CHECK-NEXT: value m: 2 = [0, 0]
// CHECK-NEXT: value v: 2 = [0, 0]
// CHECK-NEXT: value w: 2 = [-1.16667, -1.75]
func.func @train_step(%x: tensor<2x2xf32>, %labels: tensor<2x2xi64>) -> tensor<f32> attributes {train.entry_point = #train.entry_point<train_step>} {
  %w = train.read @w : tensor<2xf32>
  %n = train.token_count %labels ignore -1 : (tensor<2x2xi64>) -> tensor<f32>
  %sums:2 = train.accumulate (%i = %x) : (tensor<2x2xf32>) -> (tensor<f32>, tensor<2xf32>) {
    %s = tx.reduce_sum %i [0] : tensor<2xf32> -> tensor<f32>
    train.yield %s, %i : tensor<f32>, tensor<2xf32>
  }
  %loss = tx.div %sums#0, %n : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %nn = tx.broadcast %n : tensor<f32> -> tensor<2xf32>
  %g = tx.div %sums#1, %nn : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %rate = train.learning_rate : tensor<f32>
  %new = train.sgd %w, %g, %rate {decay = 0.0} : (tensor<2xf32>, tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  train.write @w, %new : tensor<2xf32>
  return %loss : tensor<f32>
}

// Adam's first steps with a constant gradient have the length of the rate; decay 0.1 takes
// 0.5 x 0.1 x w as well: 1 - 0.5 - 0.05 = 0.45, 0.45 - 0.5 - 0.0225 = -0.0725.
// ADAM: gradient w: 2 = [2, 2]
// ADAM-NEXT: value m: 2 = [0.38, 0.38]
// ADAM-NEXT: value v: 2 = [0.007996, 0.007996]
// ADAM-NEXT: value w: 2 = [-0.0725, -0.0725]
func.func @adam() {
  %w = train.read @w : tensor<2xf32>
  %m = train.read @m : tensor<2xf32>
  %v = train.read @v : tensor<2xf32>
  %g = tx.constant dense<2.0> : tensor<2xf32> : tensor<2xf32>
  %rate = train.learning_rate : tensor<f32>
  %step = train.step_number : tensor<f32>
  %new:3 = train.adamw %w, %g, %m, %v, %rate, %step {beta1 = 0.9, beta2 = 0.999, epsilon = 1.0e-12, decay = 0.1} : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<f32>, tensor<f32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>)
  train.write @w, %new#0 : tensor<2xf32>
  train.write @m, %new#1 : tensor<2xf32>
  train.write @v, %new#2 : tensor<2xf32>
  return
}

// CALL: result 0: 2 = [4, 4]
func.func @caller() -> tensor<2xf32> {
  %x = tx.constant dense<2.0> : tensor<2xf32> : tensor<2xf32>
  %0 = func.call @twice(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
func.func @twice(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = tx.add %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
