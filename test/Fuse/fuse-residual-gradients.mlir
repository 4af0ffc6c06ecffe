// RUN: partita-opt %s --fuse-residual-gradients | FileCheck %s
// RUN: partita-opt %s --fuse-residual-gradients -o %t.mlir
// RUN: bash %S/equal.sh %s %t.mlir residual later rms

// CHECK-LABEL: @residual(
// CHECK-SAME:    %[[RES:[a-z0-9]*]]: tensor<4x6xf64>)
// CHECK-NEXT:    %[[DX:.*]], %[[DW:.*]], %[[DB:.*]], %{{.*}} = tx.layer_norm_grad_add %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[RES]]
// CHECK-NEXT:    return %[[DX]], %[[DW]], %[[DB]]
func.func @residual(%x: tensor<4x6xf64>, %w: tensor<6xf64>, %mean: tensor<4xf64>, %rstd: tensor<4xf64>, %dy: tensor<4x6xf64>, %res: tensor<4x6xf64>) -> (tensor<4x6xf64>, tensor<6xf64>, tensor<6xf64>) {
  %g:4 = tx.layer_norm_grad %x, %w, %mean, %rstd, %dy : (tensor<4x6xf64>, tensor<6xf64>, tensor<4xf64>, tensor<4xf64>, tensor<4x6xf64>) -> (tensor<4x6xf64>, tensor<6xf64>, tensor<6xf64>, tensor<6xf64>)
  %d = tx.add %res, %g#0 : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  return %d, %g#1, %g#2 : tensor<4x6xf64>, tensor<6xf64>, tensor<6xf64>
}

// The other branch comes later: so does the gradient, since nobody waits for it.
// CHECK-LABEL: @later(
// CHECK-NEXT:    tx.neg
// CHECK-NEXT:    tx.layer_norm_grad_add
func.func @later(%x: tensor<4x6xf64>, %w: tensor<6xf64>, %mean: tensor<4xf64>, %rstd: tensor<4xf64>, %dy: tensor<4x6xf64>, %res: tensor<4x6xf64>) -> (tensor<4x6xf64>, tensor<6xf64>, tensor<6xf64>) {
  %g:4 = tx.layer_norm_grad %x, %w, %mean, %rstd, %dy : (tensor<4x6xf64>, tensor<6xf64>, tensor<4xf64>, tensor<4xf64>, tensor<4x6xf64>) -> (tensor<4x6xf64>, tensor<6xf64>, tensor<6xf64>, tensor<6xf64>)
  %n = tx.neg %res : (tensor<4x6xf64>) -> tensor<4x6xf64>
  %d = tx.add %g#0, %n : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  return %d, %g#1, %g#2 : tensor<4x6xf64>, tensor<6xf64>, tensor<6xf64>
}

// Somebody waits for the weight's gradient.
// CHECK-LABEL: @needed_earlier(
// CHECK-NOT:     layer_norm_grad_add
func.func @needed_earlier(%x: tensor<4x6xf64>, %w: tensor<6xf64>, %mean: tensor<4xf64>, %rstd: tensor<4xf64>, %dy: tensor<4x6xf64>) -> (tensor<4x6xf64>, tensor<6xf64>) {
  %g:4 = tx.layer_norm_grad %x, %w, %mean, %rstd, %dy : (tensor<4x6xf64>, tensor<6xf64>, tensor<4xf64>, tensor<4xf64>, tensor<4x6xf64>) -> (tensor<4x6xf64>, tensor<6xf64>, tensor<6xf64>, tensor<6xf64>)
  %n = tx.neg %g#1 : (tensor<6xf64>) -> tensor<6xf64>
  %b = tx.broadcast %n : tensor<6xf64> -> tensor<4x6xf64>
  %d = tx.add %g#0, %b : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  return %d, %g#2 : tensor<4x6xf64>, tensor<6xf64>
}

// CHECK-LABEL: @rms(
// CHECK-SAME:    %[[RES:[a-z0-9]*]]: tensor<4x6xf64>)
// CHECK-NEXT:    %[[DX:.*]], %[[DW:.*]] = tx.rms_norm_grad_add %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[RES]]
// CHECK-NEXT:    return %[[DX]], %[[DW]]
func.func @rms(%x: tensor<4x6xf64>, %w: tensor<6xf64>, %rstd: tensor<4xf64>, %dy: tensor<4x6xf64>, %res: tensor<4x6xf64>) -> (tensor<4x6xf64>, tensor<6xf64>) {
  %g:2 = tx.rms_norm_grad %x, %w, %rstd, %dy : (tensor<4x6xf64>, tensor<6xf64>, tensor<4xf64>, tensor<4x6xf64>) -> (tensor<4x6xf64>, tensor<6xf64>)
  %d = tx.add %res, %g#0 : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  return %d, %g#1 : tensor<4x6xf64>, tensor<6xf64>
}
