// RUN: partita-opt %s --fuse-classifier | FileCheck %s
// RUN: partita-opt %s --fuse-classifier -o %t.mlir
// RUN: bash %S/equal.sh %s %t.mlir training cotangent_behind evaluation

// CHECK-LABEL: @training(
// CHECK-SAME:    %[[X:[a-z0-9]*]]: tensor<2x4x3xf64>, %[[W:[a-z0-9]*]]: tensor<6x3xf64>, %[[LABELS:[a-z0-9]*]]: tensor<2x4xi64>, %[[DLOSS:[a-z0-9]*]]: tensor<2x4xf64>)
// CHECK-NEXT:    %[[LOSS:.*]], %[[DX:.*]], %[[DW:.*]] = tx.classifier_loss_grad %[[X]], %[[W]], %[[LABELS]], %[[DLOSS]] ignore 3
// CHECK-NEXT:    return %[[LOSS]], %[[DX]], %[[DW]]
func.func @training(%x: tensor<2x4x3xf64>, %w: tensor<6x3xf64>, %labels: tensor<2x4xi64>, %dloss: tensor<2x4xf64>) -> (tensor<2x4xf64>, tensor<2x4x3xf64>, tensor<6x3xf64>) {
  %logits = tx.matmul_nt %x, %w : (tensor<2x4x3xf64>, tensor<6x3xf64>) -> tensor<2x4x6xf64>
  %loss, %lse = tx.cross_entropy %logits, %labels ignore 3 : (tensor<2x4x6xf64>, tensor<2x4xi64>) -> (tensor<2x4xf64>, tensor<2x4xf64>)
  %dlogits = tx.cross_entropy_grad %logits, %labels, %lse, %dloss ignore 3 : (tensor<2x4x6xf64>, tensor<2x4xi64>, tensor<2x4xf64>, tensor<2x4xf64>) -> tensor<2x4x6xf64>
  %dx = tx.matmul %dlogits, %w : (tensor<2x4x6xf64>, tensor<6x3xf64>) -> tensor<2x4x3xf64>
  %dw = tx.matmul_tn %dlogits, %x : (tensor<2x4x6xf64>, tensor<2x4x3xf64>) -> tensor<6x3xf64>
  return %loss, %dx, %dw : tensor<2x4xf64>, tensor<2x4x3xf64>, tensor<6x3xf64>
}

// The loss's cotangent is made after the loss, whose sum somebody reads in between.
// CHECK-LABEL: @cotangent_behind(
// CHECK-NEXT:    tx.reciprocal
// CHECK-NEXT:    %[[SEED:.*]] = tx.broadcast
// CHECK-NEXT:    tx.classifier_loss_grad %{{.*}}, %{{.*}}, %{{.*}}, %[[SEED]]
// CHECK-NEXT:    tx.reduce_sum
// CHECK-NEXT:    return
func.func @cotangent_behind(%x: tensor<4x3xf64>, %w: tensor<6x3xf64>, %labels: tensor<4xi64>, %count: tensor<f64>) -> (tensor<f64>, tensor<4x3xf64>, tensor<6x3xf64>) {
  %logits = tx.matmul_nt %x, %w : (tensor<4x3xf64>, tensor<6x3xf64>) -> tensor<4x6xf64>
  %loss, %lse = tx.cross_entropy %logits, %labels ignore 3 : (tensor<4x6xf64>, tensor<4xi64>) -> (tensor<4xf64>, tensor<4xf64>)
  %sum = tx.reduce_sum %loss [0] : tensor<4xf64> -> tensor<f64>
  %scale = tx.reciprocal %count : (tensor<f64>) -> tensor<f64>
  %dloss = tx.broadcast %scale : tensor<f64> -> tensor<4xf64>
  %dlogits = tx.cross_entropy_grad %logits, %labels, %lse, %dloss ignore 3 : (tensor<4x6xf64>, tensor<4xi64>, tensor<4xf64>, tensor<4xf64>) -> tensor<4x6xf64>
  %dw = tx.matmul_tn %dlogits, %x : (tensor<4x6xf64>, tensor<4x3xf64>) -> tensor<6x3xf64>
  %dx = tx.matmul %dlogits, %w : (tensor<4x6xf64>, tensor<6x3xf64>) -> tensor<4x3xf64>
  return %sum, %dx, %dw : tensor<f64>, tensor<4x3xf64>, tensor<6x3xf64>
}

// CHECK-LABEL: @evaluation(
// CHECK-NEXT:    tx.classifier_loss %
// CHECK-NEXT:    return
func.func @evaluation(%x: tensor<4x3xf64>, %w: tensor<6x3xf64>, %labels: tensor<4xi64>) -> tensor<4xf64> {
  %logits = tx.matmul_nt %x, %w : (tensor<4x3xf64>, tensor<6x3xf64>) -> tensor<4x6xf64>
  %loss, %lse = tx.cross_entropy %logits, %labels ignore 3 : (tensor<4x6xf64>, tensor<4xi64>) -> (tensor<4xf64>, tensor<4xf64>)
  return %loss : tensor<4xf64>
}

// Somebody else looks at the logits.
// CHECK-LABEL: @logits_wanted(
// CHECK-NOT:     classifier_loss
func.func @logits_wanted(%x: tensor<4x3xf64>, %w: tensor<6x3xf64>, %labels: tensor<4xi64>) -> (tensor<4xf64>, tensor<4x6xf64>) {
  %logits = tx.matmul_nt %x, %w : (tensor<4x3xf64>, tensor<6x3xf64>) -> tensor<4x6xf64>
  %loss, %lse = tx.cross_entropy %logits, %labels ignore 3 : (tensor<4x6xf64>, tensor<4xi64>) -> (tensor<4xf64>, tensor<4xf64>)
  return %loss, %logits : tensor<4xf64>, tensor<4x6xf64>
}

// The cotangent depends on the loss: there is no doing both at once.
// CHECK-LABEL: @cotangent_of_loss(
// CHECK-NOT:     classifier_loss
func.func @cotangent_of_loss(%x: tensor<4x3xf64>, %w: tensor<6x3xf64>, %labels: tensor<4xi64>) -> (tensor<4x3xf64>, tensor<6x3xf64>) {
  %logits = tx.matmul_nt %x, %w : (tensor<4x3xf64>, tensor<6x3xf64>) -> tensor<4x6xf64>
  %loss, %lse = tx.cross_entropy %logits, %labels ignore 3 : (tensor<4x6xf64>, tensor<4xi64>) -> (tensor<4xf64>, tensor<4xf64>)
  %dlogits = tx.cross_entropy_grad %logits, %labels, %lse, %loss ignore 3 : (tensor<4x6xf64>, tensor<4xi64>, tensor<4xf64>, tensor<4xf64>) -> tensor<4x6xf64>
  %dx = tx.matmul %dlogits, %w : (tensor<4x6xf64>, tensor<6x3xf64>) -> tensor<4x3xf64>
  %dw = tx.matmul_tn %dlogits, %x : (tensor<4x6xf64>, tensor<4x3xf64>) -> tensor<6x3xf64>
  return %dx, %dw : tensor<4x3xf64>, tensor<6x3xf64>
}
