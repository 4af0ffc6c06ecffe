// RUN: partita-opt %s --note-schedule | FileCheck %s
// A stage with an order of its passes. All costs are those of bytes, 10 FLOPs each: 512 of the matmul, 132 of the sum, 384 of the product.
// CHECK: module attributes {pipe.count = 2 : i64, pipe.stage = 0 : i64, train.costs = #train.costs<order = <2 x (forward 0), 2 x (backward 0)>, passes = [#train.pass_cost<pass = <forward>, cost = 6440>, #train.pass_cost<pass = <backward>, cost = 3840>]>}
// RUN: partita-opt %s --note-schedule --note-schedule | FileCheck %s
// Of passes that run in turn, joined, both are noted.
// CHECK: module attributes {pipe.count = 2 : i64, pipe.stage = 1 : i64, train.costs = #train.costs<order = <2 x (forward 0, backward 0)>, passes = [#train.pass_cost<pass = <forward>, cost = 6440>, #train.pass_cost<pass = <backward>, cost = 3840>]>}
// Without an order, and without stages, there is nothing to note.
// RUN: sed 's/{order = .*>}//' %s | partita-opt --note-schedule | FileCheck %s --check-prefix=NONE
// RUN: sed 's/^module attributes .*/module {/; /pipe\./d; s/%dy/%j/' %s | partita-opt --note-schedule | FileCheck %s --check-prefix=NONE
// NONE-NOT: train.costs
// NONE: train.accumulate
// NONE-NOT: train.costs
// RUN: partita-opt %s --note-schedule | sed 's/train.costs = .*]>/train.costs = 3/' | not partita-opt 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: error: train.costs is 3 : i64, expected a #train.costs

module {
module attributes {pipe.count = 2 : i64, pipe.stage = 0 : i64} {
  func.func @train_step(%x: tensor<2x4x8xf32>, %w: tensor<8x8xf32>) -> (tensor<f32>, tensor<4x8xf32>) attributes {train.entry_point = #train.entry_point<train_step>} {
    %0:2 = train.accumulate (%i = %x) : (tensor<2x4x8xf32>) -> (tensor<f32>, tensor<4x8xf32>) {
      %y = tx.matmul %i, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      pipe.send %y over <0 to 1> : tensor<4x8xf32>
      %part = tx.reduce_sum %y [0, 1] : tensor<4x8xf32> -> tensor<f32>
      train.yield %part : tensor<f32> saves %y : tensor<4x8xf32>
    } backward (%j, %y_saved) {
      %dy = pipe.recv over <1 to 0> : tensor<4x8xf32>
      %d = tx.mul %dy, %y_saved : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
      train.yield %d : tensor<4x8xf32>
    } {order = #train.order<2 x (forward 0), 2 x (backward 0)>}
    return %0#0, %0#1 : tensor<f32>, tensor<4x8xf32>
  }
}
module attributes {pipe.count = 2 : i64, pipe.stage = 1 : i64} {
  func.func @train_step(%x: tensor<2x4x8xf32>, %w: tensor<8x8xf32>) -> (tensor<f32>, tensor<4x8xf32>) attributes {train.entry_point = #train.entry_point<train_step>} {
    %0:2 = train.accumulate (%j = %x) : (tensor<2x4x8xf32>) -> (tensor<f32>, tensor<4x8xf32>) {
      %y = tx.matmul %j, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %part = tx.reduce_sum %y [0, 1] : tensor<4x8xf32> -> tensor<f32>
      %d = tx.mul %j, %y {train.backward} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
      pipe.send %d over <1 to 0> {train.backward} : tensor<4x8xf32>
      train.yield %part, %d : tensor<f32>, tensor<4x8xf32>
    } {order = #train.order<2 x (forward 0)>}
    return %0#0, %0#1 : tensor<f32>, tensor<4x8xf32>
  }
}
}
