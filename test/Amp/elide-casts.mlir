// Ops between casts read and store 16 bits themselves, where that changes no bit: where all that they read is widened, and all that they
// make is rounded.
// RUN: partita-opt %s --elide-casts --canonicalize | FileCheck %s

// CHECK-LABEL: @both
func.func @both(%x: tensor<4x8xbf16>, %y: tensor<4x8xbf16>) -> tensor<4x8xbf16> {
  // CHECK-NEXT: %[[SUM:.*]] = tx.add %arg0, %arg1 : (tensor<4x8xbf16>, tensor<4x8xbf16>) -> tensor<4x8xbf16>
  // CHECK-NEXT: return %[[SUM]]
  %a = tx.cast %x : tensor<4x8xbf16> -> tensor<4x8xf32>
  %b = tx.cast %y : tensor<4x8xbf16> -> tensor<4x8xf32>
  %s = tx.add %a, %b : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %r = tx.cast %s : tensor<4x8xf32> -> tensor<4x8xbf16>
  return %r : tensor<4x8xbf16>
}

// The statistics of a norm stay; a comparison has nothing to round.
// CHECK-LABEL: @statistics
func.func @statistics(%x: tensor<4x8xf16>, %w: tensor<8xf16>) -> (tensor<4x8xf16>, tensor<4xf32>, tensor<4x8xi1>) {
  // CHECK: tx.rms_norm %arg0, %arg1 {{.*}} : (tensor<4x8xf16>, tensor<8xf16>) -> (tensor<4x8xf16>, tensor<4xf32>)
  // CHECK: tx.less %arg0, %arg0 : (tensor<4x8xf16>, tensor<4x8xf16>) -> tensor<4x8xi1>
  // CHECK-NOT: tx.cast
  %a = tx.cast %x : tensor<4x8xf16> -> tensor<4x8xf32>
  %b = tx.cast %w : tensor<8xf16> -> tensor<8xf32>
  %n, %rstd = tx.rms_norm %a, %b eps 1.0e-05 : (tensor<4x8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>)
  %r = tx.cast %n : tensor<4x8xf32> -> tensor<4x8xf16>
  %l = tx.less %a, %a : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
  return %r, %rstd, %l : tensor<4x8xf16>, tensor<4xf32>, tensor<4x8xi1>
}

// A loss reads 16 bits and makes 32.
// CHECK-LABEL: @exact
func.func @exact(%x: tensor<4x8xbf16>, %labels: tensor<4xi64>) -> tensor<4xf32> {
  // CHECK-NEXT: tx.cross_entropy %arg0, %arg1 ignore -100 : (tensor<4x8xbf16>, tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>)
  %a = tx.cast %x : tensor<4x8xbf16> -> tensor<4x8xf32>
  %loss, %lse = tx.cross_entropy %a, %labels ignore -100 : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>)
  return %loss : tensor<4xf32>
}

// What is read in 32 bits too, is of High precision, or comes in 32 bits, is left as it is.
// CHECK-LABEL: @left
func.func @left(%x: tensor<4xbf16>, %y: tensor<4xf32>) -> (tensor<4xbf16>, tensor<4xf32>, tensor<4xbf16>, tensor<4xbf16>) {
  // CHECK: tx.neg {{.*}} : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: tx.exp {{.*}} : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: tx.add {{.*}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %a = tx.cast %x : tensor<4xbf16> -> tensor<4xf32>
  %n = tx.neg %a : (tensor<4xf32>) -> tensor<4xf32>
  %r = tx.cast %n : tensor<4xf32> -> tensor<4xbf16>
  %e = tx.exp %a : (tensor<4xf32>) -> tensor<4xf32>
  %f = tx.cast %e : tensor<4xf32> -> tensor<4xbf16>
  %s = tx.add %a, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %t = tx.cast %s : tensor<4xf32> -> tensor<4xbf16>
  return %r, %n, %f, %t : tensor<4xbf16>, tensor<4xf32>, tensor<4xbf16>, tensor<4xbf16>
}

// The model's own casts round, wherever they stand: x.half().float() around a function.
// CHECK-LABEL: @own
func.func @own(%x: tensor<4x8xf16>) -> tensor<4x8xf16> {
  // CHECK-NEXT: tx.cast
  // CHECK-NEXT: tx.tanh %{{.*}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK-NEXT: tx.cast
  %a = tx.cast %x {tx.rounds} : tensor<4x8xf16> -> tensor<4x8xf32>
  %t = tx.tanh %a : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %r = tx.cast %t {tx.rounds} : tensor<4x8xf32> -> tensor<4x8xf16>
  return %r : tensor<4x8xf16>
}
