// RUN: partita-opt %s --schedule-stages | FileCheck %s
// RUN: sed 's/schedule = #one/schedule = #all/' %s | partita-opt --schedule-stages | FileCheck %s --check-prefix=GPIPE
// RUN: sed 's/schedule = #one/schedule = #file/' %s | partita-opt --schedule-stages | FileCheck %s --check-prefix=FILE
// RUN: sed 's/schedule = #one/schedule = #split/' %s | partita-opt --split-backward --schedule-stages | FileCheck %s --check-prefix=WEIGHTS --implicit-check-not=warning
// CHECK: module {
// GPIPE: module {
// RUN: sed 's/schedule = #one/schedule = #split/' %s | not partita-opt --schedule-stages 2>&1 | FileCheck %s --check-prefix=FULL
// FULL: error: has no weights region for the schedule's slots of stage 0; split-backward makes it
// RUN: sed 's/schedule = #one/schedule = #split/' %s | partita-opt --split-backward | sed 's/schedule<name.*>]>/schedule<name = "1f1b", orders = [#train.order<1 x (forward 0), 3 x (forward 1, backward 0), 1 x (backward 3)>, #train.order<4 x (forward 0, backward 0)>]>/' | not partita-opt --schedule-stages 2>&1 | FileCheck %s --check-prefix=SPLIT
// SPLIT: error: has a weights region, and the schedule no slots for it on stage 0
// RUN: sed 's/train.schedule = #one//' %s | not partita-opt --schedule-stages 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: sed 's/train.schedule = #one//' %s | not partita-opt --split-backward 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: has no train.schedule; choose-schedule sets it before the program is cut into stages
// RUN: sed 's/schedule = #one/schedule = #three/' %s | not partita-opt --schedule-stages 2>&1 | FileCheck %s --check-prefix=THREE
// THREE: error: schedule: it is for 3 stages, the program has 2
// RUN: sed 's/schedule = #one/schedule = #few/' %s | not partita-opt --schedule-stages 2>&1 | FileCheck %s --check-prefix=FEW
// FEW: error: runs over 4 micro-batches, and the schedule over 2
// RUN: sed 's/schedule = #one/schedule = #stuck/' %s | not partita-opt --schedule-stages 2>&1 | FileCheck %s --check-prefix=STUCK
// STUCK: error: schedule: b.json: stage 0, slot 0 (backward of micro-batch 0): waits for the forward of micro-batch 0 on stage 0, which comes after it
// RUN: sed 's/schedule = #one/schedule = 4/' %s | not partita-opt 2>&1 | FileCheck %s --check-prefix=TYPE
// TYPE: error: train.schedule is 4 : i64, expected a #train.schedule
// RUN: sed 's/orders = .#train.order<4 x (forward 0), 4 x (backward 0)>, /orders = [3, /' %s | not partita-opt 2>&1 | FileCheck %s --check-prefix=ROW
// ROW: error: schedule 'gpipe' has [3{{.*}}], expected a #train.order for each stage

#one = #train.schedule<name = "1f1b", orders = [#train.order<1 x (forward 0), 3 x (forward 1, backward 0), 1 x (backward 3)>, #train.order<4 x (forward 0, backward 0)>]>
#all = #train.schedule<name = "gpipe", orders = [#train.order<4 x (forward 0), 4 x (backward 0)>, #train.order<4 x (forward 0), 4 x (backward 0)>]>
#file = #train.schedule<name = "a.json", orders = [#train.order<2 x (forward 0), 2 x (forward 2, backward 0), 2 x (backward 2)>, #train.order<1 x (forward 0), 3 x (forward 1, backward 0), 1 x (backward 3)>]>
#split = #train.schedule<name = "zb-h1", orders = [#train.order<1 x (forward 0), 3 x (forward 1, backward 0, weights 0), 1 x (backward 3, weights 3)>, #train.order<1 x (forward 0, backward 0), 3 x (forward 1, backward 1, weights 0), 1 x (weights 3)>]>
#three = #train.schedule<name = "gpipe", orders = [#train.order<1 x (forward 0, backward 0)>, #train.order<1 x (forward 0, backward 0)>, #train.order<1 x (forward 0, backward 0)>]>
#few = #train.schedule<name = "gpipe", orders = [#train.order<2 x (forward 0), 2 x (backward 0)>, #train.order<2 x (forward 0), 2 x (backward 0)>]>
#stuck = #train.schedule<name = "b.json", orders = [#train.order<1 x (backward 0, forward 0)>, #train.order<1 x (forward 0, backward 0)>]>

module attributes {train.schedule = #one} {
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
