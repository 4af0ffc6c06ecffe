// RUN: partita-opt %s --slice-positions --canonicalize | FileCheck %s
// RUN: partita-opt %s --slice-positions -o %t.mlir
// RUN: bash %S/equal.sh %s %t.mlir positions all some gradient full_gradient

// CHECK-LABEL: @positions(
// CHECK-NEXT:    tx.slice %{{.*}} [0, 0] by [1, 1] : tensor<6x8xf32> -> tensor<4x8xf32>
// CHECK-NEXT:    return
func.func @positions(%table: tensor<6x8xf32>) -> tensor<4x8xf32> {
  %0 = tx.iota 0.0, 1.0 : tensor<4xi64>
  %1 = tx.embedding %table, %0 : (tensor<6x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// CHECK-LABEL: @all(
// CHECK-SAME:    %[[TABLE:[a-z0-9]*]]: tensor<4x6xf64>
// CHECK-NEXT:    %[[ROWS:.*]] = tx.reshape %[[TABLE]] : tensor<4x6xf64> -> tensor<1x4x6xf64>
// CHECK-NEXT:    return %[[ROWS]]
func.func @all(%table: tensor<4x6xf64>) -> tensor<1x4x6xf64> {
  %i = tx.iota 0.0, 1.0 : tensor<4xi64>
  %ids = tx.reshape %i : tensor<4xi64> -> tensor<1x4xi64>
  %0 = tx.embedding %table, %ids : (tensor<4x6xf64>, tensor<1x4xi64>) -> tensor<1x4x6xf64>
  return %0 : tensor<1x4x6xf64>
}

// CHECK-LABEL: @some(
// CHECK:         tx.slice %{{.*}} [2, 0] by [1, 1] : tensor<7x6xf64> -> tensor<4x6xf64>
// CHECK-NOT:     tx.embedding
func.func @some(%table: tensor<7x6xf64>) -> tensor<2x2x6xf64> {
  %i = tx.iota 2.0, 1.0 : tensor<4xi64>
  %ids = tx.reshape %i : tensor<4xi64> -> tensor<2x2xi64>
  %0 = tx.embedding %table, %ids : (tensor<7x6xf64>, tensor<2x2xi64>) -> tensor<2x2x6xf64>
  return %0 : tensor<2x2x6xf64>
}

// CHECK-LABEL: @gradient(
// CHECK:         tx.pad %{{.*}} [2, 0] by [1, 1] : tensor<4x6xf64> -> tensor<7x6xf64>
func.func @gradient(%dy: tensor<1x4x6xf64>) -> tensor<7x6xf64> {
  %i = tx.iota 2.0, 1.0 : tensor<4xi64>
  %ids = tx.reshape %i : tensor<4xi64> -> tensor<1x4xi64>
  %0 = tx.embedding_grad %ids, %dy : (tensor<1x4xi64>, tensor<1x4x6xf64>) -> tensor<7x6xf64>
  return %0 : tensor<7x6xf64>
}

// CHECK-LABEL: @full_gradient(
// CHECK-NEXT:    tx.reshape %{{.*}} : tensor<1x4x6xf64> -> tensor<4x6xf64>
// CHECK-NEXT:    return
func.func @full_gradient(%dy: tensor<1x4x6xf64>) -> tensor<4x6xf64> {
  %i = tx.iota 0.0, 1.0 : tensor<4xi64>
  %ids = tx.reshape %i : tensor<4xi64> -> tensor<1x4xi64>
  %0 = tx.embedding_grad %ids, %dy : (tensor<1x4xi64>, tensor<1x4x6xf64>) -> tensor<4x6xf64>
  return %0 : tensor<4x6xf64>
}

// Sums over ranks stay open.
// CHECK-LABEL: @over_ranks(
// CHECK:         tx.pad %{{.*}} [0, 0] by [1, 1] : tensor<4x6xf32, #par.place<[4, 6], partial [dp]>> -> tensor<7x6xf32, #par.place<[7, 6], partial [dp]>>
func.func @over_ranks(%dy: tensor<1x4x6xf32, #par.place<[1, 4, 6], partial [dp]>>) -> tensor<7x6xf32, #par.place<[7, 6], partial [dp]>> {
  %i = tx.iota 0.0, 1.0 : tensor<4xi64>
  %ids = tx.reshape %i : tensor<4xi64> -> tensor<1x4xi64>
  %0 = tx.embedding_grad %ids, %dy : (tensor<1x4xi64>, tensor<1x4x6xf32, #par.place<[1, 4, 6], partial [dp]>>) -> tensor<7x6xf32, #par.place<[7, 6], partial [dp]>>
  return %0 : tensor<7x6xf32, #par.place<[7, 6], partial [dp]>>
}

// Steps of two, rows beyond the table, rows without a gradient, and ids of the run keep the lookup.
// CHECK-LABEL: @others(
// CHECK-NOT:     tx.slice
// CHECK-NOT:     tx.pad
// CHECK:         return
func.func @others(%table: tensor<7x6xf64>, %ids: tensor<4xi64>, %dy: tensor<4x6xf64>) -> (tensor<4x6xf64>, tensor<4x6xf64>, tensor<4x6xf64>, tensor<7x6xf64>) {
  %even = tx.iota 0.0, 2.0 : tensor<4xi64>
  %0 = tx.embedding %table, %even : (tensor<7x6xf64>, tensor<4xi64>) -> tensor<4x6xf64>
  %last = tx.iota 4.0, 1.0 : tensor<4xi64>
  %1 = tx.embedding %table, %last : (tensor<7x6xf64>, tensor<4xi64>) -> tensor<4x6xf64>
  %2 = tx.embedding %table, %ids : (tensor<7x6xf64>, tensor<4xi64>) -> tensor<4x6xf64>
  %first = tx.iota 0.0, 1.0 : tensor<4xi64>
  %3 = tx.embedding_grad %first, %dy padding 1 : (tensor<4xi64>, tensor<4x6xf64>) -> tensor<7x6xf64>
  return %0, %1, %2, %3 : tensor<4x6xf64>, tensor<4x6xf64>, tensor<4x6xf64>, tensor<7x6xf64>
}
