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
func.func @forward(%x: tensor<4x8xf32>) -> tensor<8xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %sum = train.accumulate (%i = %x) : (tensor<4x8xf32>) -> tensor<8xf32> {
    %y = tx.exp %i : (tensor<8xf32>) -> tensor<8xf32>
    train.yield %y : tensor<8xf32>
  }
  return %sum : tensor<8xf32>
}

// The last stage of 1F1B: each backward pass follows its forward pass. An order stays, of both together.
// CHECK-LABEL: func.func @in_turn
// CHECK: %[[S:.*]]:2 = train.accumulate (%[[I:.*]] = %arg0) : (tensor<4x8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
// CHECK-NEXT: %[[Y:.*]] = tx.exp %[[I]]
// CHECK-NEXT: %[[D:.*]] = tx.mul %[[I]], %[[Y]] {train.backward}
// CHECK-NEXT: train.yield %[[Y]], %[[D]] : tensor<8xf32>, tensor<8xf32>
// CHECK-NEXT: } {order = #train.order<4 x (forward 0)>, pipe.may_join}
func.func @in_turn(%x: tensor<4x8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %sum, %dsum = train.accumulate (%i = %x) : (tensor<4x8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
    %y = tx.exp %i : (tensor<8xf32>) -> tensor<8xf32>
    train.yield %y : tensor<8xf32> saves %y : tensor<8xf32>
  } backward (%j, %y_saved) {
    %d = tx.mul %j, %y_saved : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    train.yield %d : tensor<8xf32>
  } {order = #train.order<4 x (forward 0, backward 0)>, pipe.may_join}
  return %sum, %dsum : tensor<8xf32>, tensor<8xf32>
}

// A stage before it is one micro-batch ahead: the passes stay apart.
// CHECK-LABEL: func.func @ahead
// CHECK: } backward (
// CHECK: order = #train.order<1 x (forward 0), 3 x (forward 1, backward 0), 1 x (backward 3)>
func.func @ahead(%x: tensor<4x8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %sum, %dsum = train.accumulate (%i = %x) : (tensor<4x8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
    %y = tx.exp %i : (tensor<8xf32>) -> tensor<8xf32>
    train.yield %y : tensor<8xf32> saves %y : tensor<8xf32>
  } backward (%j, %y_saved) {
    %d = tx.mul %j, %y_saved : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    train.yield %d : tensor<8xf32>
  } {order = #train.order<1 x (forward 0), 3 x (forward 1, backward 0), 1 x (backward 3)>}
  return %sum, %dsum : tensor<8xf32>, tensor<8xf32>
}
