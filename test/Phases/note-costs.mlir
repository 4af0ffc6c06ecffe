// RUN: partita-opt %s --note-flops --choose-schedule="stages=2 schedule=gpipe" --note-costs | FileCheck %s
// RUN: partita-opt %s --note-flops --note-costs | FileCheck %s --check-prefix=ONE
// ONE-NOT: cost =

// Costs are those of the ops that are left after fusion: a layer's matmul and its tanh with the bias forward, two matmuls and the tanh's
// gradient backward. The bias is computed on each stage that has one of the layers 0 to 2, so it counts with none of them.
// CHECK: train.shared_work = [#train.shared_work<first = 0, last = 2, forward_cost = [[F:[0-9]+]], backward_cost = [[B:[0-9]+]]>]
// CHECK-SAME: #train.work<place = 0, {{[^>]*}}parameters = 16, forward_cost = [[F0:[0-9]+]], backward_cost = [[B0:[0-9]+]]>
// CHECK-SAME: #train.work<place = 1, {{[^>]*}}parameters = 16, forward_cost = [[F1:[0-9]+]], backward_cost = [[B1:[0-9]+]]>
// CHECK-SAME: #train.work<place = 2, {{[^>]*}}parameters = 16, forward_cost = [[F0]], backward_cost = {{[0-9]+}}>
// CHECK-SAME: #train.work<place = -2, {{[^>]*}}forward_cost = {{[0-9]+}}>
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
