// RUN: partita-opt %s --peel-last-micro-batch | FileCheck %s

// CHECK-LABEL: func.func @four
// CHECK: %[[LAST:.*]] = tx.slice %arg0 [3, 0] by [1, 1] : tensor<4x8xf32> -> tensor<1x8xf32>
// CHECK: %[[ONE:.*]] = tx.reshape %[[LAST]] : tensor<1x8xf32> -> tensor<8xf32>
// CHECK: %[[MOST:.*]] = tx.slice %arg0 [0, 0] by [1, 1] : tensor<4x8xf32> -> tensor<3x8xf32>
// CHECK: %[[SUM:.*]] = train.accumulate (%{{.*}} = %[[MOST]])
// CHECK: %[[Y:.*]] = tx.exp %[[ONE]]
// CHECK: %[[R:.*]] = tx.add %[[SUM]], %[[Y]]
// CHECK: return %[[R]]
func.func @four(%x: tensor<4x8xf32>) -> tensor<8xf32> {
  %s = train.accumulate (%i = %x) : (tensor<4x8xf32>) -> tensor<8xf32> {
    %y = tx.exp %i : (tensor<8xf32>) -> tensor<8xf32>
    train.yield %y : tensor<8xf32>
  }
  return %s : tensor<8xf32>
}

// CHECK-LABEL: func.func @one
// CHECK-NOT: train.accumulate
// CHECK-NOT: tx.slice
// CHECK: %[[ONE:.*]] = tx.reshape %arg0 : tensor<1x8xf32> -> tensor<8xf32>
// CHECK: %[[Y:.*]] = tx.exp %[[ONE]]
// CHECK: return %[[Y]]
func.func @one(%x: tensor<1x8xf32>) -> tensor<8xf32> {
  %s = train.accumulate (%i = %x) : (tensor<1x8xf32>) -> tensor<8xf32> {
    %y = tx.exp %i : (tensor<8xf32>) -> tensor<8xf32>
    train.yield %y : tensor<8xf32>
  }
  return %s : tensor<8xf32>
}

// A sum of what is there anyhow: of a micro-batch as it is, of a value from outside.
// CHECK-LABEL: func.func @unchanged
// CHECK: %[[ONE:.*]] = tx.reshape
// CHECK: %[[S:.*]]:2 = train.accumulate
// CHECK-DAG: tx.add %[[S]]#0, %[[ONE]]
// CHECK-DAG: tx.add %[[S]]#1, %arg1
func.func @unchanged(%x: tensor<4x8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %s:2 = train.accumulate (%i = %x) : (tensor<4x8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
    train.yield %i, %y : tensor<8xf32>, tensor<8xf32>
  }
  return %s#0, %s#1 : tensor<8xf32>, tensor<8xf32>
}
