// Beside a reduction stands what a pass computes after its start. What it sends there is no part of its cost.
// RUN: partita-opt %s --note-schedule | FileCheck %s
// CHECK: #train.pass_cost<pass = <backward>, cost = 3840, reduced = 128>
#partial = #par.place<[4, 8], partial [dp]>
module {
module attributes {par.mesh = #par.mesh<dp = 2>, pipe.count = 2, pipe.stage = 1} {
  func.func @train_step(%x: tensor<2x4x8xf32>, %g: tensor<4x8xf32, #partial>) -> tensor<4x8xf32> attributes {train.entry_point = #train.entry_point<train_step>} {
    %sum, %start, %last = train.accumulate (%i = %x) : (tensor<2x4x8xf32>) -> (tensor<4x8xf32, #partial>, i64, tensor<4x8xf32, #partial>) {
      train.yield
    } backward (%j) onto (%so_far = 0) {
      %d = tx.add %so_far, %g {train.backward} : (tensor<4x8xf32, #partial>, tensor<4x8xf32, #partial>) -> tensor<4x8xf32, #partial>
      %t = par.all_reduce_start %d over "dp" {train.backward, train.last} : tensor<4x8xf32, #partial> -> i64
      pipe.send %j over <1 to 0> : tensor<4x8xf32>
      train.yield %d : tensor<4x8xf32, #partial> last %t, %d : i64, tensor<4x8xf32, #partial>
    } {order = #train.order<2 x (forward 0), 2 x (backward 0)>}
    %r = par.wait %start, %last : i64, tensor<4x8xf32, #partial> -> tensor<4x8xf32>
    return %r : tensor<4x8xf32>
  }
}
}
