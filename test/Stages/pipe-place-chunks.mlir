// RUN: partita-opt %s --note-flops --choose-schedule="stages=2 schedule=interleaved" --note-costs --pipe-place | FileCheck %s --check-prefixes=CHECK,TURN
// RUN: partita-opt %s --note-flops --choose-schedule="stages=2 schedule=zb-v" --pipe-place=assign=uniform | FileCheck %s --check-prefixes=CHECK,WAVE
// RUN: echo '{"chunks": 2, "wave": true, "slots": [["F0"], ["F0"]]}' > %t.json
// RUN: partita-opt %s --note-flops --choose-schedule="stages=2 schedule=%t.json" --note-costs --pipe-place | FileCheck %s --check-prefixes=CHECK,WAVE
// RUN: partita-opt %s --note-flops --choose-schedule="stages=2 chunks=2 schedule=interleaved" --pipe-place=assign=cuts:1,2,3 | FileCheck %s --check-prefixes=CHECK,TURN

// Four layers, each a chunk of one of two stages: dealt out in turn, or as a wave, where positions 1 and 2 are both on stage 1 and
// 0 and 3 on stage 0.
// CHECK: module attributes {pipe.axis = 0 : i64, pipe.chunks = 2 : i64, pipe.cuts = array<i64: 0, 1, 2, 3>, pipe.stages = 2 : i64,
// TURN-NOT: pipe.wave
// WAVE-SAME: pipe.wave
// CHECK: train.parameter @a : tensor<4x4xf32> {pipe.on = array<i64: 0, 3>}
// CHECK: train.parameter @b : tensor<4x4xf32> {pipe.on = array<i64: 1, 2>}
train.parameter @a : tensor<4x4xf32>
train.parameter @b : tensor<4x4xf32>

// What layer 3 needs from layer 0: assigned round-robin, layer 1 is on layer 3's stage, and already has it. In the wave layer 0 itself is on
// that stage. A value leaves a position behind its last use there. Numbers distinguish moves between the same two stages.
// CHECK-LABEL: func.func @forward
// CHECK: %[[A:.*]] = pipe.share
// CHECK: %[[B:.*]] = pipe.share
// CHECK: %[[A0:.*]] = pipe.pin %[[A]] to 0
// CHECK: %[[X0:.*]] = tx.matmul %arg0, %[[A0]]
// CHECK-NEXT: %[[X1:.*]] = pipe.move %[[X0]] over <0 to 1>
// WAVE-NEXT: %[[AGAIN:.*]] = pipe.move %[[X0]] over <0 to 3>
// CHECK-NEXT: %[[B1:.*]] = pipe.pin %[[B]] to 1
// CHECK-NEXT: tx.matmul %[[X1]], %[[B1]]
// TURN-NEXT: %[[AGAIN:.*]] = pipe.move %[[X1]] over <1 to 3>
// TURN: pipe.move %{{.*}} over <1 to 2, number 1>
// WAVE: pipe.move %{{.*}} over <1 to 2>
// TURN: pipe.move %{{.*}} over <2 to 3, number 2>
// WAVE: pipe.move %{{.*}} over <2 to 3, number 1>
// CHECK: tx.add %{{.*}}, %[[AGAIN]]
func.func @forward(%x: tensor<2x4xf32>) -> tensor<2x4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %a = train.read @a : tensor<4x4xf32>
  %b = train.read @b : tensor<4x4xf32>
  %0 = tx.matmul %x, %a {train.layer = #train.layer<0 of 4>} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %1 = tx.matmul %0, %b {train.layer = #train.layer<1 of 4>} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %2 = tx.matmul %1, %b {train.layer = #train.layer<2 of 4>} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %3 = tx.matmul %2, %a {train.layer = #train.layer<3 of 4>} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %4 = tx.add %3, %0 {train.layer = #train.layer<3 of 4>} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %4 : tensor<2x4xf32>
}
