// RUN: partita-opt %s --schedule-backward | FileCheck %s

// What was saved is the forward pass's own value again.
// CHECK-LABEL: func.func @example
// CHECK: %[[S:.*]]:2 = train.accumulate (%[[I:.*]] = %arg0) : (tensor<4x8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
// CHECK-NEXT: %[[Y:.*]] = tx.exp %[[I]]
// CHECK-NEXT: %[[D:.*]] = tx.mul %[[I]], %[[Y]] {train.backward}
// CHECK-NEXT: train.yield %[[Y]], %[[D]] : tensor<8xf32>, tensor<8xf32>
// CHECK-NEXT: }
// CHECK-NEXT: return %[[S]]#0, %[[S]]#1
func.func @example(%x: tensor<4x8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %sum, %dsum = train.accumulate (%i = %x) : (tensor<4x8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
    %y = tx.exp %i : (tensor<8xf32>) -> tensor<8xf32>
    train.yield %y : tensor<8xf32> saves %y : tensor<8xf32>
  } backward (%j, %y_saved) {
    %d = tx.mul %j, %y_saved : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    train.yield %d : tensor<8xf32>
  }
  return %sum, %dsum : tensor<8xf32>, tensor<8xf32>
}

// A loop that does not train stays as it is.
// CHECK-LABEL: func.func @forward
// CHECK-NOT: train.backward
// CHECK: return
func.func @forward(%x: tensor<4x8xf32>) -> tensor<8xf32> {
  %sum = train.accumulate (%i = %x) : (tensor<4x8xf32>) -> tensor<8xf32> {
    %y = tx.exp %i : (tensor<8xf32>) -> tensor<8xf32>
    train.yield %y : tensor<8xf32>
  }
  return %sum : tensor<8xf32>
}
