// RUN: partita-opt %s --schedule-stages=schedule=1f1b | FileCheck %s
// RUN: partita-opt %s --schedule-stages=schedule=gpipe | FileCheck %s --check-prefix=GPIPE
// RUN: echo '{"slots": [["F0", "F1", "F2", "B0", "F3", "B1", "B2", "B3"], ["F0", "F1", "B0", "F2", "B1", "F3", "B2", "B3"]]}' > %t.json
// RUN: partita-opt %s --schedule-stages=schedule=%t.json | FileCheck %s --check-prefix=FILE
// RUN: partita-opt %s --split-backward=schedule=zb-h1 --schedule-stages=schedule=zb-h1 | FileCheck %s --check-prefix=WEIGHTS --implicit-check-not=warning
// RUN: not partita-opt %s --schedule-stages=schedule=zb-h1 2>&1 | FileCheck %s --check-prefix=FULL
// FULL: error: has no weights region for the schedule's slots of stage 0; split-backward makes it
// RUN: not partita-opt %s --split-backward=schedule=zb-h1 --schedule-stages=schedule=1f1b 2>&1 | FileCheck %s --check-prefix=SPLIT
// SPLIT: error: has a weights region, and the schedule no slots for it on stage 0

module {
module attributes {pipe.count = 2 : i64, pipe.stage = 0 : i64} {
  func.func @train_step(%x: tensor<4x4xf32>) attributes {train.entry_point = #train.entry_point<train_step>} {
    %0:2 = train.accumulate (%i = %x) : (tensor<4x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %y = tx.exp %i : (tensor<4xf32>) -> tensor<4xf32>
      pipe.send %y over <0 to 1> : tensor<4xf32>
      train.yield %y : tensor<4xf32> saves %y : tensor<4xf32>
    } backward (%j, %y_saved) {
      %dy = pipe.recv over <1 to 0> : tensor<4xf32>
      // CHECK: tx.mul {{.*}} {train.backward}
      %d = tx.mul %dy, %y_saved : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      train.yield %d : tensor<4xf32>
    }
    // CHECK: {order = #train.order<1 x (forward 0), 3 x (forward 1, backward 0), 1 x (backward 3)>}
    // GPIPE: {order = #train.order<4 x (forward 0), 4 x (backward 0)>}
    // WEIGHTS: {order = #train.order<1 x (forward 0), 3 x (forward 1, backward 0, weights 0), 1 x (backward 3, weights 3)>}
    // FILE: {order = #train.order<2 x (forward 0), 2 x (forward 2, backward 0), 2 x (backward 2)>}
    return
  }
}
module attributes {pipe.count = 2 : i64, pipe.stage = 1 : i64} {
  func.func @train_step(%x: tensor<4x4xf32>) attributes {train.entry_point = #train.entry_point<train_step>} {
    %0:2 = train.accumulate (%i = %x) : (tensor<4x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %y = pipe.recv over <0 to 1> : tensor<4xf32>
      train.yield %y : tensor<4xf32> saves %y : tensor<4xf32>
    } backward (%j, %y_saved) {
      pipe.send %y_saved over <1 to 0> : tensor<4xf32>
      train.yield %y_saved : tensor<4xf32>
    }
    // CHECK: {order = #train.order<4 x (forward 0, backward 0)>, pipe.may_join}
    // GPIPE: {order = #train.order<4 x (forward 0), 4 x (backward 0)>}
    // WEIGHTS: {order = #train.order<1 x (forward 0, backward 0), 3 x (forward 1, backward 1, weights 0), 1 x (weights 3)>}
    // FILE: {order = #train.order<1 x (forward 0), 3 x (forward 1, backward 0), 1 x (backward 3)>}
    return
  }
  // A loop without a backward pass has one order.
  // CHECK-LABEL: func.func @eval_step
  // CHECK-NOT: order
  func.func @eval_step(%x: tensor<4x4xf32>) attributes {train.entry_point = #train.entry_point<eval_step>} {
    %0 = train.accumulate (%i = %x) : (tensor<4x4xf32>) -> tensor<4xf32> {
      train.yield %i : tensor<4xf32>
    }
    return
  }
}
}
