// RUN: partita-opt %s --split-input-file --single-precision --canonicalize | FileCheck %s

// CHECK: train.parameter @w : tensor<4x8xf32> initial(<"w.bin", offset = 0, bytes = 64, f16>)
train.parameter @w : tensor<4x8xf16> initial(<"w.bin", offset = 0, bytes = 64, f16>)

// CHECK-LABEL: func.func @forward(%arg0: tensor<2x4xf32>, %arg1: tensor<2x8xi64>) -> tensor<2x8xf32>
func.func @forward(%x: tensor<2x4xf16>, %i: tensor<2x8xi64>) -> tensor<2x8xbf16> attributes {train.entry_point = #train.entry_point<forward>} {
  // CHECK-DAG: %[[LOWEST:.*]] = tx.constant dense<-6.550400e+04> : tensor<2x8xf32> : tensor<2x8xf32>
  // CHECK-DAG: %[[W:.*]] = train.read @w : tensor<4x8xf32>
  %low = tx.constant dense<-6.550400e+04> : tensor<2x8xf16> : tensor<2x8xf16>
  %w = train.read @w : tensor<4x8xf16>
  // CHECK: %[[Y:.*]] = tx.matmul %arg0, %[[W]] : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  %y = tx.matmul %x, %w : (tensor<2x4xf16>, tensor<4x8xf16>) -> tensor<2x8xf16>
  // Casts that exporters put around what must not be done in 16 bits have nothing left to do.
  // CHECK-NEXT: %[[E:.*]] = tx.exp %[[Y]] : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %f = tx.cast %y : tensor<2x8xf16> -> tensor<2x8xf32>
  %e = tx.exp %f : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %h = tx.cast %e : tensor<2x8xf32> -> tensor<2x8xf16>
  // CHECK-NEXT: %[[C:.*]] = tx.cast %arg1 : tensor<2x8xi64> -> tensor<2x8xf32>
  %c = tx.cast %i : tensor<2x8xi64> -> tensor<2x8xf16>
  // CHECK-NEXT: %[[S:.*]] = tx.add %[[E]], %[[C]]
  // CHECK-NEXT: %[[R:.*]] = tx.max %[[S]], %[[LOWEST]]
  // CHECK-NEXT: return %[[R]] : tensor<2x8xf32>
  %s = tx.add %h, %c : (tensor<2x8xf16>, tensor<2x8xf16>) -> tensor<2x8xf16>
  %m = tx.max %s, %low : (tensor<2x8xf16>, tensor<2x8xf16>) -> tensor<2x8xf16>
  %r = tx.cast %m : tensor<2x8xf16> -> tensor<2x8xbf16>
  return %r : tensor<2x8xbf16>
}

// The lowest double, a mask's, is the lowest float; infinities stay.
// CHECK-LABEL: func.func @double(%arg0: tensor<3xf32>) -> tensor<3xf32>
func.func @double(%x: tensor<3xf64>) -> tensor<3xf64> {
  // CHECK: tx.constant dense<[-3.40282347E+38, 0xFF800000, 1.000000e-01]> : tensor<3xf32> : tensor<3xf32>
  %0 = tx.constant dense<[-1.7976931348623157e+308, 0xFFF0000000000000, 0.1]> : tensor<3xf64> : tensor<3xf64>
  %1 = tx.max %x, %0 : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  return %1 : tensor<3xf64>
}

// -----

// Without parameters of 16 bits: what is only moved before it is widened stays rounded, what is computed in 16 bits does not.
train.parameter @w : tensor<4x8xf32>

// CHECK-LABEL: func.func @rounded
func.func @rounded(%x: tensor<2x4xf32>) -> tensor<2x8xf32> {
  %w = train.read @w : tensor<4x8xf32>
  // CHECK: %[[P:.*]] = tx.matmul
  %p = tx.matmul %x, %w : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  // CHECK-NEXT: %[[H:.*]] = tx.cast %[[P]] {tx.rounds} : tensor<2x8xf32> -> tensor<2x8xf16>
  // CHECK-NEXT: %[[R:.*]] = tx.cast %[[H]] {tx.rounds} : tensor<2x8xf16> -> tensor<2x8xf32>
  %h = tx.cast %p : tensor<2x8xf32> -> tensor<2x8xf16>
  %v = tx.reshape %h : tensor<2x8xf16> -> tensor<16xf16>
  %f = tx.cast %v : tensor<16xf16> -> tensor<16xf32>
  %s = tx.reshape %f : tensor<16xf32> -> tensor<2x8xf32>
  // CHECK-NEXT: %[[E:.*]] = tx.exp %[[P]] : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %b = tx.cast %p : tensor<2x8xf32> -> tensor<2x8xbf16>
  %e = tx.exp %b : (tensor<2x8xbf16>) -> tensor<2x8xbf16>
  %g = tx.cast %e : tensor<2x8xbf16> -> tensor<2x8xf32>
  // CHECK-NEXT: tx.add %[[R]], %[[E]]
  %y = tx.add %s, %g : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// Integers become singles first, as in PyTorch; truth values are exact.
// CHECK-LABEL: func.func @integers
func.func @integers(%i: tensor<2x8xi64>, %m: tensor<2x8xi1>) -> tensor<2x8xf32> {
  // CHECK-NEXT: %[[F:.*]] = tx.cast %arg0 : tensor<2x8xi64> -> tensor<2x8xf32>
  // CHECK-NEXT: %[[H:.*]] = tx.cast %[[F]] {tx.rounds} : tensor<2x8xf32> -> tensor<2x8xbf16>
  // CHECK-NEXT: %[[R:.*]] = tx.cast %[[H]] {tx.rounds} : tensor<2x8xbf16> -> tensor<2x8xf32>
  %h = tx.cast %i : tensor<2x8xi64> -> tensor<2x8xbf16>
  %f = tx.cast %h : tensor<2x8xbf16> -> tensor<2x8xf32>
  // CHECK-NEXT: %[[M:.*]] = tx.cast %arg1 : tensor<2x8xi1> -> tensor<2x8xf32>
  %n = tx.cast %m : tensor<2x8xi1> -> tensor<2x8xbf16>
  %w = tx.cast %n : tensor<2x8xbf16> -> tensor<2x8xf32>
  // CHECK-NEXT: tx.mul %[[R]], %[[M]]
  %y = tx.mul %f, %w : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}
