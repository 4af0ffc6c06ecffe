// RUN: partita-opt %s --pipe-pass-back | FileCheck %s
// RUN: partita-opt %s --pipe-pass-back --pipe-report --pipe-cut --canonicalize | FileCheck %s --check-prefix=CUT
// CUT-NOT: pipe.sum
// Waiting costs one forward, one backward nothing, and a step that sums a gradient over the stages waits anyway.
// RUN: sed 's/schedule = #late/schedule = #even/' %s | partita-opt --pipe-pass-back | FileCheck %s --check-prefix=EVEN
// RUN: sed -e 's/return %loss/%all = pipe.sum %da on [0, 1] : tensor<f32> return %loss/' %s | partita-opt --pipe-pass-back | FileCheck %s --check-prefix=EVEN
// EVEN-NOT: pipe.copies
// A sum between positions of one stage waits for no other stage.
// RUN: sed -e 's/return %loss/%all = pipe.sum %da on [0] : tensor<f32> return %loss/' %s | partita-opt --pipe-pass-back | FileCheck %s --check-prefix=OWN
// OWN: pipe.copies
// A damaged schedule is refused before it is simulated.
// RUN: sed 's/order<2 x (forward 0), 2/order<2 x (forward.7 0), 2/' %s | not partita-opt --pipe-pass-back -o /dev/null 2>&1 | FileCheck %s --check-prefix=CHUNK
// CHUNK: error: schedule: stage 0, slot 0 (forward of micro-batch 0, chunk 7): there is no chunk 7, only 0{{$}}
// RUN: sed 's/order<2 x (forward 0), 2/order<1000000000 x (forward 0), 2/' %s | not partita-opt --pipe-pass-back -o /dev/null 2>&1 | FileCheck %s --check-prefix=MANY
// MANY: error: an order has at most 4194304 slots

#even = #train.schedule<name = "1f1b", orders = [#train.order<1 x (forward 0), 3 x (forward 1, backward 0), 1 x (backward 3)>, #train.order<4 x (forward 0, backward 0)>]>
#late = #train.schedule<name = "zb-h2", orders = [#train.order<2 x (forward 0), 2 x (forward 2, backward 0, weights 0), 2 x (backward 2, weights 2)>, #train.order<1 x (forward 0, backward 0), 1 x (forward 1, backward 1), 2 x (forward 2, backward 2, weights 0), 2 x (weights 2)>]>

module attributes {pipe.stages = 2, train.schedule = #late} {
train.parameter @a : tensor<f32> {pipe.on = array<i64: 0>}
train.parameter @b : tensor<f32> {pipe.on = array<i64: 1>}
// The last stage's sum stays; the first one adds up what comes back with each cotangent. What follows the loop is then on both.
// CHECK-LABEL: func.func @train_step
// CHECK: %[[SUMS:.*]]:3 = train.accumulate
// CHECK: %[[X:.*]] = pipe.move %{{.*}} over <0 to 1>
// CHECK-NEXT: %[[Y:.*]] = tx.mul %[[X]]
// CHECK-NEXT: train.yield %[[Y]] : tensor<f32> saves %{{.*}}, %[[Y]] :
// CHECK-NEXT: } backward (%{{.*}}, %{{.*}}, %[[SAVED:.*]]) {
// CHECK-NEXT: %[[BACK:.*]] = pipe.move %[[SAVED]] over <1 to 0, number 1>
// CHECK: train.yield %{{.*}}, %[[BACK]] :
// CHECK: %[[LOSS:.*]] = pipe.copies %[[SUMS]]#0, %[[SUMS]]#2 on [1, 0] : tensor<f32>
// CHECK-NEXT: %[[MEAN:.*]] = tx.mul %[[LOSS]], %{{.*}}
// CHECK-NEXT: return %[[MEAN]]
// CUT-LABEL: pipe.stage = 0
// CUT: %[[SUMS:.*]]:2 = train.accumulate
// CUT: } backward (
// CUT-NEXT: %[[BACK:.*]] = pipe.recv over <1 to 0, number 1>
// CUT: train.yield %{{.*}}, %[[BACK]] :
// CUT: %[[MEAN:.*]] = tx.mul %[[SUMS]]#1, %{{.*}}
// CUT-NEXT: return %[[MEAN]]
// CUT-LABEL: pipe.stage = 1
// CUT: %[[SUM:.*]] = train.accumulate
// CUT: } backward (
// CUT-NEXT: pipe.send %{{.*}} over <1 to 0, number 1>
// CUT: %[[MEAN:.*]] = tx.mul %[[SUM]], %{{.*}}
// CUT-NEXT: return %[[MEAN]] :
func.func @train_step(%xs: tensor<4xf32>, %scale: tensor<f32>) -> tensor<f32> attributes {train.entry_point = #train.entry_point<train_step>} {
  %a = train.read @a : tensor<f32>
  %b = train.read @b : tensor<f32>
  %sum, %da = train.accumulate (%x = %xs) : (tensor<4xf32>) -> (tensor<f32>, tensor<f32>) {
    %0 = tx.mul %x, %a : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %1 = pipe.move %0 over <0 to 1> : tensor<f32>
    %2 = tx.mul %1, %b : (tensor<f32>, tensor<f32>) -> tensor<f32>
    train.yield %2 : tensor<f32> saves %1 : tensor<f32>
  } backward (%y, %saved) {
    %3 = tx.mul %saved, %b : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %4 = pipe.move %3 over <1 to 0> : tensor<f32>
    %5 = tx.mul %4, %y : (tensor<f32>, tensor<f32>) -> tensor<f32>
    train.yield %5 : tensor<f32>
  }
  %loss = tx.mul %sum, %scale : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}
