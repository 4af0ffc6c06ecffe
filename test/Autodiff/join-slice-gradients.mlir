// RUN: partita-opt %s --join-slice-gradients --canonicalize | FileCheck %s

// CHECK-LABEL: func.func @two
// CHECK: %[[C:.*]] = tx.concat %arg0, %arg1 along 1
// CHECK-NEXT: return %[[C]]
func.func @two(%x: tensor<2x3xf32>, %y: tensor<2x2xf32>) -> tensor<2x5xf32> {
  %a = tx.pad %x [0, 0] by [1, 1] : tensor<2x3xf32> -> tensor<2x5xf32>
  %b = tx.pad %y [0, 3] by [1, 1] : tensor<2x2xf32> -> tensor<2x5xf32>
  %c = tx.add %b, %a : (tensor<2x5xf32>, tensor<2x5xf32>) -> tensor<2x5xf32>
  return %c : tensor<2x5xf32>
}

// CHECK-LABEL: func.func @three
// CHECK: %[[C:.*]] = tx.concat %arg0, %arg1, %arg2 along 0
// CHECK-NEXT: return %[[C]]
func.func @three(%x: tensor<1x4xf32>, %y: tensor<1x4xf32>, %z: tensor<1x4xf32>) -> tensor<3x4xf32> {
  %a = tx.pad %x [0, 0] by [1, 1] : tensor<1x4xf32> -> tensor<3x4xf32>
  %b = tx.pad %y [1, 0] by [1, 1] : tensor<1x4xf32> -> tensor<3x4xf32>
  %c = tx.pad %z [2, 0] by [1, 1] : tensor<1x4xf32> -> tensor<3x4xf32>
  %d = tx.add %c, %b : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %e = tx.add %d, %a : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  return %e : tensor<3x4xf32>
}

// A gap, an overlap, a stride: the sum stays.
// CHECK-LABEL: func.func @gap
// CHECK: tx.add
// CHECK: tx.add
// CHECK: tx.add
func.func @gap(%x: tensor<2xf32>, %y: tensor<2xf32>, %z: tensor<3xf32>) -> (tensor<5xf32>, tensor<4xf32>, tensor<4xf32>) {
  %a = tx.pad %x [0] by [1] : tensor<2xf32> -> tensor<5xf32>
  %b = tx.pad %y [3] by [1] : tensor<2xf32> -> tensor<5xf32>
  %c = tx.add %a, %b : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  %d = tx.pad %z [0] by [1] : tensor<3xf32> -> tensor<4xf32>
  %e = tx.pad %y [2] by [1] : tensor<2xf32> -> tensor<4xf32>
  %f = tx.add %d, %e : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %g = tx.pad %x [0] by [2] : tensor<2xf32> -> tensor<4xf32>
  %h = tx.pad %y [1] by [2] : tensor<2xf32> -> tensor<4xf32>
  %i = tx.add %g, %h : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %c, %f, %i : tensor<5xf32>, tensor<4xf32>, tensor<4xf32>
}
