// RUN: partita-opt %s --schedule-stages=schedule=interleaved | FileCheck %s
// RUN: echo '{"chunks": 2, "slots": [["F0", "F1", "F0.1", "F1.1", "B0.1", "B1.1", "B0", "B1"], ["F0", "F1", "F0.1", "B0.1", "F1.1", "B1.1", "B0", "B1"]]}' > %t.json
// RUN: partita-opt %s --schedule-stages=schedule=%t.json | FileCheck %s --check-prefix=FILE
// RUN: not partita-opt %s --schedule-stages=schedule=1f1b 2>&1 | FileCheck %s --check-prefix=ONE
// ONE: error: schedule: 1f1b has one chunk a stage, not 2; interleaved has any number
// RUN: sed 's/"chunks": 2/"chunks": 2, "wave": true/' %t.json > %t.wave.json && not partita-opt %s --schedule-stages=schedule=%t.wave.json 2>&1 | FileCheck %s --check-prefix=WAVE
// WAVE: error: schedule: the file's has 2 chunks a stage in a wave, the program 2 chunks a stage
// RUN: sed 's/tensor<2x4xf32>/tensor<3x4xf32>/' %s > %t.mlir && not partita-opt %t.mlir --schedule-stages=schedule=interleaved 2>&1 | FileCheck %s --check-prefix=GROUPS
// GROUPS: error: schedule: interleaved runs micro-batches in groups of as many as there are stages: 3 are not a multiple of 2

// Two stages of two chunks, assigned round-robin: four positions.
module {
module attributes {pipe.chunks = 2 : i64, pipe.count = 2 : i64, pipe.stage = 0 : i64} {
  func.func @train_step(%x: tensor<2x4xf32>) attributes {train.entry_point = #train.entry_point<train_step>} {
    %0:2 = train.accumulate (%i = %x) : (tensor<2x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      pipe.send %i over <0 to 1> : tensor<4xf32>
      train.yield
    } forward 1 (%i1) {
      %y = pipe.recv over <1 to 0, number 1> : tensor<4xf32>
      pipe.send %y over <0 to 1, number 2> : tensor<4xf32>
      train.yield
    } backward 1 (%i2) {
      %dy = pipe.recv over <1 to 0, number 2> : tensor<4xf32>
      pipe.send %dy over <0 to 1, number 1> : tensor<4xf32>
      // CHECK: tx.exp {{.*}} {train.backward}
      %d = tx.exp %dy : (tensor<4xf32>) -> tensor<4xf32>
      train.yield %d : tensor<4xf32>
    } backward (%i3) {
      %dx = pipe.recv over <1 to 0> : tensor<4xf32>
      // CHECK: tx.exp {{.*}} {train.backward}
      %d = tx.exp %dx : (tensor<4xf32>) -> tensor<4xf32>
      train.yield %d : tensor<4xf32>
    }
    // CHECK: {order = #train.order<2 x (forward 0), 2 x (forward.1 0), 2 x (backward.1 0), 2 x (backward 0)>}
    // FILE: {order = #train.order<2 x (forward 0), 2 x (forward.1 0), 2 x (backward.1 0), 2 x (backward 0)>}
    return
  }
}
module attributes {pipe.chunks = 2 : i64, pipe.count = 2 : i64, pipe.stage = 1 : i64} {
  func.func @train_step(%x: tensor<2x4xf32>) attributes {train.entry_point = #train.entry_point<train_step>} {
    %0 = train.accumulate (%i = %x) : (tensor<2x4xf32>) -> tensor<4xf32> {
      %y = pipe.recv over <0 to 1> : tensor<4xf32>
      pipe.send %y over <1 to 0, number 1> : tensor<4xf32>
      train.yield
    } forward 1 (%i1) {
      %y = pipe.recv over <0 to 1, number 2> : tensor<4xf32>
      train.yield saves %y : tensor<4xf32>
    } backward 1 (%i2, %y2) {
      pipe.send %y2 over <1 to 0, number 2> : tensor<4xf32>
      train.yield %y2 : tensor<4xf32>
    } backward (%i3, %y3) {
      %dy = pipe.recv over <0 to 1, number 1> : tensor<4xf32>
      pipe.send %dy over <1 to 0> : tensor<4xf32>
      train.yield
    }
    // CHECK: {order = #train.order<2 x (forward 0), 2 x (forward.1 0), 2 x (backward.1 0), 2 x (backward 0)>}
    // FILE: {order = #train.order<2 x (forward 0), 2 x (forward.1 0, backward.1 0), 2 x (backward 0)>}
    return
  }
}
}
