// RUN: not partita-opt %s --scale-loss="scale=-1" 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not partita-opt %s --scale-loss="scale=0 power=10 minimum=2000" 2>&1 | FileCheck %s --check-prefix=FIRST
// What has no effect is checked too.
// RUN: not partita-opt %s --scale-loss="minimum=nan" 2>&1 | FileCheck %s --check-prefix=MINIMUM
// RUN: not partita-opt %s --scale-loss="hysteresis=-1" 2>&1 | FileCheck %s --check-prefix=HYSTERESIS
// RUN: not partita-opt %s --scale-loss="scale=8 power=-1" 2>&1 | FileCheck %s --check-prefix=POWER
// RUN: not partita-opt %s --scale-loss="scale=8 window=0" 2>&1 | FileCheck %s --check-prefix=WINDOW
// RUN: not partita-opt %s --scale-loss="scale=0" 2>&1 | FileCheck %s --check-prefix=NAME

// NEGATIVE: error: scale: '-1' is neither a number above 0 nor 0, for a dynamic one
// FIRST: error: the first loss scale is 1.024000e+03, expected at least minimum=2.000000e+03 and at most 2^127
// MINIMUM: error: minimum=nan, expected a number from 1e-30 to 2^127
// HYSTERESIS: error: hysteresis=-1, expected an integer from 1 to
// POWER: error: power=-1, expected an integer from 0 to 127
// WINDOW: error: window=0, expected an integer from 1 to
// NAME: error: parameter 'loss_scale.steps' is called like a state of the loss scale: rename it in the model's file, or train without --loss-scale
train.parameter @w : tensor<4xf32> {train.name = "loss_scale.steps"}
func.func @train_step(%x: tensor<4xf32>) attributes {train.entry_point = #train.entry_point<train_step>} {
  %w = train.read @w : tensor<4xf32>
  %y = tx.mul %w, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %loss = tx.reduce_sum %y [0] : tensor<4xf32> -> tensor<f32>
  train.minimize %loss : tensor<f32>
  return
}
