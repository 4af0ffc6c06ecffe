// RUN: partita-opt %s --partition-seed=mesh=dp=2 | FileCheck %s
// RUN: partita-opt %s --partition-seed=mesh=dp=1 | FileCheck %s --check-prefix=ONE

// CHECK: module attributes {par.mesh = #par.mesh<dp = 2>}
// CHECK: @forward(%arg0: tensor<8x16xi64> {par.split = #par.place<[8 @dp, 16]>, train.batch = 0 : i64}
// CHECK: @train_step(%arg0: tensor<3x8x16xi64> {par.split = #par.place<[3, 8 @dp, 16]>, train.batch = 1 : i64}, %arg1: tensor<8xf32>)

// An axis of one rank splits nothing.
// ONE-NOT: par.split
func.func @forward(%ids: tensor<8x16xi64> {train.batch = 0 : i64}) -> tensor<8x16xi64> attributes {train.entry_point = #train.entry_point<forward>} {
  return %ids : tensor<8x16xi64>
}
func.func @train_step(%ids: tensor<3x8x16xi64> {train.batch = 1 : i64}, %other: tensor<8xf32>) attributes {train.entry_point = #train.entry_point<train_step>} {
  return
}
