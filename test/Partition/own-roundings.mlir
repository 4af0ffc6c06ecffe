// A cast that the model itself makes (tx.rounds) rounds the sum of the ranks' shares; one of a 16-bit program rounds the shares.
// RUN: partita-opt %s --partita-partition=mesh=tp=2 | FileCheck %s

train.parameter @a : tensor<4x8xf32>
train.parameter @b : tensor<8x4xf32>
train.parameter @c : tensor<4x8xf32>
train.parameter @d : tensor<8x4xf32>

// CHECK-LABEL: func.func @forward
func.func @forward(%x: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) attributes {train.entry_point = #train.entry_point<forward>} {
  %a = train.read @a : tensor<4x8xf32>
  %b = train.read @b : tensor<8x4xf32>
  %0 = tx.matmul %x, %a : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  %1 = tx.relu %0 : (tensor<2x8xf32>) -> tensor<2x8xf32>
  // CHECK: %[[SHARES:.*]] = tx.matmul %{{.*}} -> tensor<2x4xf32, #par.place<[2, 4], partial [tp]>>
  // CHECK: %[[SUM:.*]] = par.g %[[SHARES]] over "tp"
  // CHECK: tx.cast %[[SUM]] {{.*}}tx.rounds
  %2 = tx.matmul %1, %b : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  %3 = tx.cast %2 {tx.rounds} : tensor<2x4xf32> -> tensor<2x4xbf16>
  %4 = tx.cast %3 : tensor<2x4xbf16> -> tensor<2x4xf32>
  %5 = tx.tanh %4 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %c = train.read @c : tensor<4x8xf32>
  %d = train.read @d : tensor<8x4xf32>
  %6 = tx.matmul %5, %c : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  %7 = tx.relu %6 : (tensor<2x8xf32>) -> tensor<2x8xf32>
  // CHECK: %[[OTHERS:.*]] = tx.matmul %{{.*}} -> tensor<2x4xf32, #par.place<[2, 4], partial [tp]>>
  // CHECK: tx.cast %[[OTHERS]]
  // CHECK: par.g
  %8 = tx.matmul %7, %d : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  %9 = tx.cast %8 : tensor<2x4xf32> -> tensor<2x4xbf16>
  %10 = tx.cast %9 : tensor<2x4xbf16> -> tensor<2x4xf32>
  %11 = tx.tanh %10 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %5, %11 : tensor<2x4xf32>, tensor<2x4xf32>
}
