// RUN: partita-opt %s --note-flops --choose-schedule="stages=2 schedule=gpipe" --note-costs | FileCheck %s
// RUN: partita-opt %s --note-flops --choose-schedule="stages=2 schedule=zb-h1" --note-costs | FileCheck %s --check-prefix=SPLIT
// RUN: partita-opt %s --note-flops --choose-schedule="stages=2 schedule=gpipe" --note-costs=assign=uniform | FileCheck %s --check-prefix=NONE
// RUN: partita-opt %s --note-flops --note-costs | FileCheck %s --check-prefix=NONE
// NONE-NOT: train.spans

// Costs are those of the ops that are left after all passes on stages of one layer and of two: the matmul and the tanh with the bias forward,
// two matmuls and the tanh's gradient backward. Each stage that has layer 0 or 2 computes the bias. Layer 1 is cheaper, without it, and layer 0,
// which sends no cotangent, has one matmul less.
// CHECK: train.spans = [#train.span<first = 0, last = 0, costs = {{\[}}2560, 3840, 0]>,
// CHECK-SAME: #train.span<first = 0, last = 1, costs = {{\[}}4480, 8000, 0]>,
// CHECK-SAME: #train.span<first = 1, last = 1, costs = {{\[}}1920, 4160, 0]>,
// CHECK-SAME: #train.span<first = 1, last = 2, costs = {{\[}}{{[0-9]+}}, {{[0-9]+}}, 0]>,
// CHECK-SAME: #train.span<first = 2, last = 2, costs = {{\[}}{{[0-9]+}}, {{[0-9]+}}, 0]>]

// If weights have a pass of their own, there are spans of both kinds of stage: the first one sends no cotangent.
// SPLIT: train.spans = [#train.span<first = 0, last = 0, costs = {{\[}}2560, 3840, 0]>,
// SPLIT-SAME: #train.span<first = 2, last = 2, costs = {{\[}}{{[0-9]+}}, {{[0-9]+}}, 0]>,
// SPLIT-SAME: #train.span<first = 0, last = 0, costs = {{\[}}2560, 0, 3840], splits = true>,
// SPLIT-SAME: #train.span<first = 2, last = 2, costs = {{\[}}{{[0-9]+}}, {{[1-9][0-9]*}}, {{[1-9][0-9]*}}], splits = true>]

// The program itself stays as it is.
// CHECK-NOT: backward (
// CHECK: train.minimize
train.parameter @bias : tensor<4xf32>
train.parameter @a : tensor<4x4xf32>
train.parameter @b : tensor<4x4xf32>
train.parameter @c : tensor<4x4xf32>
func.func @train_step(%xs: tensor<4x2x4xf32>) -> tensor<f32> attributes {train.entry_point = #train.entry_point<train_step>} {
  %bias = train.read @bias : tensor<4xf32>
  %a = train.read @a : tensor<4x4xf32>
  %b = train.read @b : tensor<4x4xf32>
  %c = train.read @c : tensor<4x4xf32>
  %loss = train.accumulate (%x = %xs) : (tensor<4x2x4xf32>) -> tensor<f32> {
    %e = tx.exp %bias {train.layer = #train.layer<-1 of 3>} : (tensor<4xf32>) -> tensor<4xf32>
    %w = tx.broadcast %e {train.layer = #train.layer<-1 of 3>} : tensor<4xf32> -> tensor<2x4xf32>
    %0 = tx.matmul %x, %a {train.layer = #train.layer<0 of 3>} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %1 = tx.add %0, %w {train.layer = #train.layer<0 of 3>} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %2 = tx.tanh %1 {train.layer = #train.layer<0 of 3>} : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %3 = tx.matmul %2, %b {train.layer = #train.layer<1 of 3>} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %4 = tx.tanh %3 {train.layer = #train.layer<1 of 3>} : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %5 = tx.matmul %4, %c {train.layer = #train.layer<2 of 3>} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %6 = tx.add %5, %w {train.layer = #train.layer<2 of 3>} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %7 = tx.tanh %6 {train.layer = #train.layer<2 of 3>} : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %8 = tx.reduce_sum %7 [0, 1] {train.layer = #train.layer<-2 of 3>} : tensor<2x4xf32> -> tensor<f32>
    train.yield %8 : tensor<f32>
  }
  train.minimize %loss : tensor<f32>
  return %loss : tensor<f32>
}
