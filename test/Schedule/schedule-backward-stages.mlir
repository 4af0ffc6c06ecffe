// RUN: partita-opt %s --schedule-backward | FileCheck %s

// A backward pass that waits for the next stage stays apart, as each does when there is one micro-batch: that stage needs what is sent first.
// CHECK-LABEL: func.func @waits
// CHECK: pipe.send
// CHECK: } backward (
// CHECK: pipe.recv
module {
module attributes {pipe.count = 2 : i64, pipe.stage = 0 : i64} {
func.func @waits(%x: tensor<1x8xf32>) -> tensor<8xf32> {
  %dsum = train.accumulate (%i = %x) : (tensor<1x8xf32>) -> tensor<8xf32> {
    %y = tx.exp %i : (tensor<8xf32>) -> tensor<8xf32>
    pipe.send %y over <0 to 1> : tensor<8xf32>
    train.yield saves %y : tensor<8xf32>
  } backward (%j, %y_saved) {
    %dy = pipe.recv over <1 to 0> : tensor<8xf32>
    %d = tx.mul %dy, %y_saved : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    train.yield %d : tensor<8xf32>
  } {order = #train.order<1 x (forward 0, backward 0)>, pipe.may_join}
  return %dsum : tensor<8xf32>
}
}
}
