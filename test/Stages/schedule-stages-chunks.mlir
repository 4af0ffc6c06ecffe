// RUN: partita-opt %s --schedule-stages | FileCheck %s
// RUN: sed 's/schedule = #turn/schedule = #file/' %s | partita-opt --schedule-stages | FileCheck %s --check-prefix=FILE

#turn = #train.schedule<name = "interleaved", orders = [#train.order<2 x (forward 0), 2 x (forward.1 0), 2 x (backward.1 0), 2 x (backward 0)>, #train.order<2 x (forward 0), 2 x (forward.1 0), 2 x (backward.1 0), 2 x (backward 0)>]>
#file = #train.schedule<name = "a.json", orders = [#train.order<2 x (forward 0), 2 x (forward.1 0), 2 x (backward.1 0), 2 x (backward 0)>, #train.order<2 x (forward 0), 2 x (forward.1 0, backward.1 0), 2 x (backward 0)>]>

// Two stages of two chunks, assigned round-robin: four positions.
module attributes {train.schedule = #turn} {
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
