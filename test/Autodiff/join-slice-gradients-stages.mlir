// Slices of one parameter that two stages read: the sum of both stages' terms is partial until pipe.sum completes it, a concatenation would
// be on no stage. Slices that one stage reads are joined.
// RUN: partita-opt %s --join-slice-gradients --canonicalize | FileCheck %s

module attributes {pipe.stages = 2} {
train.parameter @w : tensor<4xf32> {pipe.on = array<i64: 0, 1>}
// CHECK-LABEL: func.func @two
// CHECK: %[[SUM:.*]] = tx.add
// CHECK: pipe.sum %[[SUM]] on [0, 1]
func.func @two() -> tensor<4xf32> {
  %w = train.read @w : tensor<4xf32>
  %0 = tx.slice %w [0] by [1] : tensor<4xf32> -> tensor<2xf32>
  %1 = tx.slice %w [2] by [1] : tensor<4xf32> -> tensor<2xf32>
  %2 = pipe.pin %0 to 0 : tensor<2xf32>
  %3 = pipe.pin %1 to 1 : tensor<2xf32>
  %a = tx.pad %2 [0] by [1] : tensor<2xf32> -> tensor<4xf32>
  %b = tx.pad %3 [2] by [1] : tensor<2xf32> -> tensor<4xf32>
  %4 = tx.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %5 = pipe.sum %4 on [0, 1] : tensor<4xf32>
  return %5 : tensor<4xf32>
}

// CHECK-LABEL: func.func @one
// CHECK: %[[JOINED:.*]] = tx.concat
// CHECK: pipe.sum %[[JOINED]] on [0, 1]
func.func @one() -> tensor<4xf32> {
  %w = train.read @w : tensor<4xf32>
  %0 = tx.slice %w [0] by [1] : tensor<4xf32> -> tensor<2xf32>
  %1 = tx.slice %w [2] by [1] : tensor<4xf32> -> tensor<2xf32>
  %2 = pipe.pin %0 to 1 : tensor<2xf32>
  %3 = pipe.pin %1 to 1 : tensor<2xf32>
  %a = tx.pad %2 [0] by [1] : tensor<2xf32> -> tensor<4xf32>
  %b = tx.pad %3 [2] by [1] : tensor<2xf32> -> tensor<4xf32>
  %4 = tx.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %5 = pipe.sum %4 on [0, 1] : tensor<4xf32>
  return %5 : tensor<4xf32>
}
}
