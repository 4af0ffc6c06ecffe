// RUN: partita-interp %s | FileCheck %s

// A row of equal numbers, a row far below zero, a masked row.
// CHECK: result 0: 3x2 = {{\[\[}}0.5, 0.5], [0.268941, 0.731059], [1, 0]]
func.func @softmax() -> tensor<3x2xf32> {
  %x = tx.constant dense<[[1.0, 1.0], [-1001.0, -1000.0], [0.0, 0xFF800000]]> : tensor<3x2xf32> : tensor<3x2xf32>
  %0 = tx.softmax %x : (tensor<3x2xf32>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}
