// RUN: partita-opt %s --choose-schedule="stages=2 schedule=gpipe" | FileCheck %s
// CHECK: module attributes {pipe.stages = 2 : i64, train.schedule = #train.schedule<name = "gpipe", orders = [#train.order<4 x (forward 0), 4 x (backward 0)>, #train.order<4 x (forward 0), 4 x (backward 0)>]>} {
// RUN: partita-opt %s --choose-schedule="stages=2 schedule=zb-v" | FileCheck %s --check-prefix=SPLIT
// SPLIT: module attributes {pipe.chunks = 2 : i64, pipe.stages = 2 : i64, pipe.wave, train.schedule = #train.schedule<name = "zb-v", orders = [#train.order<{{.*}}weights{{.*}}>, #train.order<{{.*}}weights{{.*}}>]>} {
// RUN: echo '{"slots": [["F0", "F1", "F2", "B0", "F3", "B1", "B2", "B3"], ["F0", "F1", "B0", "F2", "B1", "F3", "B2", "B3"]]}' > %t.json
// RUN: partita-opt %s --choose-schedule="stages=2 schedule=%t.json" | FileCheck %s --check-prefix=FILE
// FILE: train.schedule = #train.schedule<name = "{{.*}}.json", orders = [#train.order<2 x (forward 0), 2 x (forward 2, backward 0), 2 x (backward 2)>, #train.order<1 x (forward 0), 3 x (forward 1, backward 0), 1 x (backward 3)>]>

// Without a training step there are no micro-batches to order.
// RUN: sed 's/entry_point<train_step>/entry_point<forward>/' %s | partita-opt --choose-schedule="stages=2 schedule=interleaved" | FileCheck %s --check-prefix=FORWARD
// FORWARD: module attributes {pipe.chunks = 2 : i64, pipe.stages = 2 : i64} {
// RUN: partita-opt %s --choose-schedule | FileCheck %s --check-prefix=ONE
// ONE-NOT: pipe.
// ONE-NOT: train.schedule
// ONE: return

// RUN: not partita-opt %s --choose-schedule=stages=0 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: stages: 0, expected 1 to 64
// RUN: not partita-opt %s --choose-schedule=stages=2 --choose-schedule=stages=2 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not partita-opt %s --mark-layers --note-flops --choose-schedule=stages=2 --note-costs --pipe-place --pipe-cut --choose-schedule=stages=2 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: error: stages: the program has some already
// RUN: partita-opt %s --mark-layers --note-flops --partita-partition=mesh=dp=1 --partita-differentiate -o %t
// RUN: not partita-opt %t --choose-schedule=stages=2 2>&1 | FileCheck %s --check-prefix=LATE
// LATE: error: stages: the program is differentiated already, and what crosses stages backward follows from what crosses them forward

// RUN: not partita-opt %s --choose-schedule="stages=2 chunks=2" 2>&1 | FileCheck %s --check-prefix=ONECHUNK
// ONECHUNK: error: schedule: 1f1b has one chunk a stage, not 2; interleaved has any number
// RUN: not partita-opt %s --choose-schedule="stages=2 chunks=3 schedule=zb-v" 2>&1 | FileCheck %s --check-prefix=WAVE
// WAVE: error: schedule: zb-v has two chunks a stage, not 3; interleaved has any number
// RUN: not partita-opt %s --choose-schedule="stages=64 chunks=5 schedule=interleaved" 2>&1 | FileCheck %s --check-prefix=MOST
// MOST: error: schedule: 64 stages of 5 chunks are 320 chunks, and at most 256 are possible
// RUN: not partita-opt %s --choose-schedule="stages=3 schedule=interleaved" 2>&1 | FileCheck %s --check-prefix=GROUPS
// GROUPS: error: schedule: interleaved runs micro-batches in groups of as many as there are stages: 4 are not a multiple of 3
// RUN: not partita-opt %s --choose-schedule="stages=2 schedule=%t.none.json" 2>&1 | FileCheck %s --check-prefix=NOFILE
// NOFILE: error: schedule: {{.*}}.json: No such file or directory
// RUN: not partita-opt %s --choose-schedule="stages=3 schedule=%t.json" 2>&1 | FileCheck %s --check-prefix=STAGES
// STAGES: error: schedule: {{.*}}.json is for 2 stages, and the program has 3
// RUN: sed 's/"B1", "B2"/"B2", "B1"/' %t.json > %t.order.json && not partita-opt %s --choose-schedule="stages=2 schedule=%t.order.json" 2>&1 | FileCheck %s --check-prefix=ORDER
// ORDER: error: schedule: {{.*}}.order.json: stage 0, slot 5 (backward of micro-batch 2): receives micro-batch 1's message: they are taken in the order in which stage 1 sends them

train.parameter @a0 : tensor<4x4xf32>
train.parameter @b0 : tensor<4x4xf32>

func.func @train_step(%xs: tensor<4x2x4xf32>) -> tensor<f32> attributes {train.entry_point = #train.entry_point<train_step>} {
  %w0 = train.read @a0 : tensor<4x4xf32>
  %w1 = train.read @b0 : tensor<4x4xf32>
  %loss = train.accumulate (%x = %xs) : (tensor<4x2x4xf32>) -> tensor<f32> {
    %s = tx.relu %x : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %0 = tx.matmul %s, %w0 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %1 = tx.add %s, %0 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %2 = tx.matmul %1, %w1 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %3 = tx.add %1, %2 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %4 = tx.exp %3 : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %5 = tx.reduce_sum %4 [0, 1] : tensor<2x4xf32> -> tensor<f32>
    train.yield %5 : tensor<f32>
  }
  train.minimize %loss : tensor<f32>
  return %loss : tensor<f32>
}
