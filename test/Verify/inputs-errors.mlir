// Ranks are given their samples of the inputs that have train.batch. Somebody has lost it.
// RUN: partita-opt %s --verify-phase=after=partition --verify-diagnostics --split-input-file

module attributes {par.mesh = #par.mesh<dp = 2>} {
// expected-error@+1 {{argument 0 of @eval_step has no train.batch after phase 'partition', and its type is split over data-parallel ranks}}
func.func @eval_step(%ids: tensor<2x8xi64, #par.place<[4 @dp, 8]>>) attributes {train.entry_point = #train.entry_point<eval_step>} { return }
}

// -----

// On one rank, another input shows it.
// expected-error@+1 {{argument 1 of @train_step has no train.batch after phase 'partition', and has as many samples as an argument that has it}}
func.func @train_step(%ids: tensor<2x4x8xi64> {train.batch = 1}, %labels: tensor<2x4x8xi64>) attributes {train.entry_point = #train.entry_point<train_step>} { return }

// -----

// Nor does any other input have it: a program's objective has given it to one.
module attributes {train.objective = "causal of 'logits'"} {
// expected-error@+1 {{argument 1 of @forward has no train.batch after phase 'partition', nor has any other}}
func.func @forward(%scale: tensor<f32>, %ids: tensor<4x8xi64>) attributes {train.entry_point = #train.entry_point<forward>} { return }
}

// -----

// These are not of the batch: positions, a scalar.
func.func @train_step(%ids: tensor<2x4x8xi64> {train.batch = 1}, %positions: tensor<2x8xi64>, %scale: tensor<f32>) attributes {train.entry_point = #train.entry_point<train_step>} { return }

// -----

// A module written by hand need not have a batch, nor a function that is called one.
module attributes {par.mesh = #par.mesh<dp = 2>} {
func.func @forward(%ids: tensor<4x8xi64>, %more: tensor<4x8xi64>) attributes {train.entry_point = #train.entry_point<forward>} {
  %zero = tx.constant dense<0.0> : tensor<2x8xf32> : tensor<2x8xf32, #par.place<[4 @dp, 8]>>
  call @layer(%zero) : (tensor<2x8xf32, #par.place<[4 @dp, 8]>>) -> ()
  return
}
func.func private @layer(%x: tensor<2x8xf32, #par.place<[4 @dp, 8]>>) { return }
}
