// RUN: partita-opt %s --fuse-lookups | FileCheck %s
// RUN: partita-opt %s --fuse-lookups -o %t.mlir
// RUN: bash %S/equal.sh %s %t.mlir positions tied earlier

module attributes {par.mesh = #par.mesh<dp = 2>} {
// CHECK-LABEL: @positions(
// CHECK-SAME:    %[[TABLE:[a-z0-9]*]]: tensor<6x8xf64>, %[[IDS:[a-z0-9]*]]: tensor<2x4xi64>, %[[ROWS:[a-z0-9]*]]: tensor<4x8xf64>)
// CHECK-NEXT:    %[[ADDEND:.*]] = tx.broadcast %[[ROWS]]
// CHECK-NEXT:    %[[SUM:.*]] = tx.fused_lookup (%[[A:.*]] = %[[TABLE]], %[[B:.*]] = %[[IDS]], %[[C:.*]] = %[[ADDEND]])
// CHECK-NEXT:      %[[FOUND:.*]] = tx.embedding %[[A]], %[[B]]
// CHECK-NEXT:      %[[BOTH:.*]] = tx.add %[[C]], %[[FOUND]]
// CHECK-NEXT:      tx.fused %[[BOTH]]
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[SUM]]
func.func @positions(%table: tensor<6x8xf64>, %ids: tensor<2x4xi64>, %rows: tensor<4x8xf64>) -> tensor<2x4x8xf64> {
  %0 = tx.embedding %table, %ids : (tensor<6x8xf64>, tensor<2x4xi64>) -> tensor<2x4x8xf64>
  %1 = tx.broadcast %rows : tensor<4x8xf64> -> tensor<2x4x8xf64>
  %2 = tx.add %1, %0 : (tensor<2x4x8xf64>, tensor<2x4x8xf64>) -> tensor<2x4x8xf64>
  return %2 : tensor<2x4x8xf64>
}

// CHECK-LABEL: @tied(
// CHECK:         %[[DW:.*]] = tx.matmul_tn
// CHECK-NEXT:    tx.fused_lookup (%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %[[DW]])
// CHECK-NEXT:      tx.embedding_grad %{{.*}}, %{{.*}} padding 1
// CHECK-NEXT:      tx.add
// CHECK-NEXT:      tx.fused
// CHECK-NOT:     tx.embedding_grad
func.func @tied(%ids: tensor<2x4xi64>, %dy: tensor<2x4x8xf64>, %x: tensor<5x8xf64>, %dlogits: tensor<5x6xf64>) -> tensor<6x8xf64> {
  %0 = tx.matmul_tn %dlogits, %x : (tensor<5x6xf64>, tensor<5x8xf64>) -> tensor<6x8xf64>
  %1 = tx.embedding_grad %ids, %dy padding 1 : (tensor<2x4xi64>, tensor<2x4x8xf64>) -> tensor<6x8xf64>
  %2 = tx.add %0, %1 : (tensor<6x8xf64>, tensor<6x8xf64>) -> tensor<6x8xf64>
  return %2 : tensor<6x8xf64>
}

// The gradient comes first: it is computed where the other one is known. What follows does not matter.
// CHECK-LABEL: @earlier(
// CHECK-NEXT:    tx.neg
// CHECK-NEXT:    tx.fused_lookup
// CHECK:         tx.neg
func.func @earlier(%ids: tensor<2x4xi64>, %dy: tensor<2x4x8xf64>, %x: tensor<6x8xf64>) -> tensor<6x8xf64> {
  %0 = tx.embedding_grad %ids, %dy : (tensor<2x4xi64>, tensor<2x4x8xf64>) -> tensor<6x8xf64>
  %1 = tx.neg %x : (tensor<6x8xf64>) -> tensor<6x8xf64>
  %2 = tx.add %0, %1 : (tensor<6x8xf64>, tensor<6x8xf64>) -> tensor<6x8xf64>
  %3 = tx.neg %2 : (tensor<6x8xf64>) -> tensor<6x8xf64>
  return %3 : tensor<6x8xf64>
}

// Each of the fused ops keeps its rule: a sum over ranks stays open, while ids are split.
// CHECK-LABEL: @over_ranks(
// CHECK:         tx.fused_lookup {{.*}} -> tensor<6x8xf32, #par.place<[6, 8], partial [dp]>>
func.func @over_ranks(%ids: tensor<2x4xi64, #par.place<[4 @dp, 4]>>, %dy: tensor<2x4x8xf32, #par.place<[4 @dp, 4, 8]>>, %dw: tensor<6x8xf32, #par.place<[6, 8], partial [dp]>>) -> tensor<6x8xf32, #par.place<[6, 8], partial [dp]>> {
  %0 = tx.embedding_grad %ids, %dy : (tensor<2x4xi64, #par.place<[4 @dp, 4]>>, tensor<2x4x8xf32, #par.place<[4 @dp, 4, 8]>>) -> tensor<6x8xf32, #par.place<[6, 8], partial [dp]>>
  %1 = tx.add %dw, %0 : (tensor<6x8xf32, #par.place<[6, 8], partial [dp]>>, tensor<6x8xf32, #par.place<[6, 8], partial [dp]>>) -> tensor<6x8xf32, #par.place<[6, 8], partial [dp]>>
  return %1 : tensor<6x8xf32, #par.place<[6, 8], partial [dp]>>
}

// A loop that also computes what follows moves no more bytes; rows that others read are written anyway; integers
// have no such kernel.
// CHECK-LABEL: @others(
// CHECK-NOT:     tx.fused_lookup
// CHECK:         return
func.func @others(%table: tensor<6x8xf64>, %ids: tensor<4xi64>, %x: tensor<4x8xf64>, %numbers: tensor<6x8xi64>, %y: tensor<4x8xi64>) -> (tensor<4x8xf64>, tensor<4x8xf64>, tensor<4x8xf64>, tensor<4x8xi64>) {
  %0 = tx.embedding %table, %ids : (tensor<6x8xf64>, tensor<4xi64>) -> tensor<4x8xf64>
  %1 = tx.add %0, %x : (tensor<4x8xf64>, tensor<4x8xf64>) -> tensor<4x8xf64>
  %2 = tx.neg %1 : (tensor<4x8xf64>) -> tensor<4x8xf64>
  %3 = tx.embedding %table, %ids : (tensor<6x8xf64>, tensor<4xi64>) -> tensor<4x8xf64>
  %4 = tx.add %3, %x : (tensor<4x8xf64>, tensor<4x8xf64>) -> tensor<4x8xf64>
  %5 = tx.embedding %numbers, %ids : (tensor<6x8xi64>, tensor<4xi64>) -> tensor<4x8xi64>
  %6 = tx.add %5, %y : (tensor<4x8xi64>, tensor<4x8xi64>) -> tensor<4x8xi64>
  return %2, %3, %4, %6 : tensor<4x8xf64>, tensor<4x8xf64>, tensor<4x8xf64>, tensor<4x8xi64>
}

}
