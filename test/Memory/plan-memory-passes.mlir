// RUN: partita-opt %s --plan-memory -o %t.mlir && FileCheck %s < %t.mlir
// RUN: partita-interp %s --entry train_step | FileCheck %s --check-prefix=VALUE
// RUN: partita-interp %t.mlir --entry train_step | FileCheck %s --check-prefix=VALUE

// VALUE: result 0: = 480
// VALUE-NEXT: result 1: 4 = [1600, 1600, 1600, 1600]

// A ring for each span of passes that saved values live through, as long as micro-batches are in flight in it. %h is needed until weights; %p for
// one slot; %d, which follows it at once, from one backward pass to weights, of two micro-batches at a time.
// CHECK-LABEL: func.func @train_step
// CHECK: tx.add {{.*}}rt.buffers = [#rt.at<in_flight 0>]
// CHECK: } forward 1
// CHECK: tx.mul {{.*}}rt.buffers = [#rt.at<in_flight 64>]
// CHECK: } backward 1
// CHECK: tx.add {{.*}}rt.buffers = [#rt.at<in_flight 128>]
// CHECK: rt.in_flight = #rt.in_flight<4 x 64 at {{[0-9]+}}, 1 x 64 at {{[0-9]+}}, 2 x 64 at {{[0-9]+}}>
func.func @train_step() -> (tensor<f32>, tensor<4xf32>) attributes {train.entry_point = #train.entry_point<train_step>} {
  %xs = tx.constant dense<[[1.0, 1.0, 1.0, 1.0], [2.0, 2.0, 2.0, 2.0], [3.0, 3.0, 3.0, 3.0], [4.0, 4.0, 4.0, 4.0]]> : tensor<4x4xf32> : tensor<4x4xf32>
  %0:2 = train.accumulate (%x = %xs) : (tensor<4x4xf32>) -> (tensor<f32>, tensor<4xf32>) {
    %h = tx.add %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    train.yield saves %h : tensor<4xf32>
  } forward 1 (%x1, %h1) {
    %p = tx.mul %h1, %h1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %loss = tx.reduce_sum %p [0] : tensor<4xf32> -> tensor<f32>
    train.yield %loss : tensor<f32> saves %p : tensor<4xf32>
  } backward 1 (%x2, %h2, %p2) {
    %d = tx.add %p2, %p2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    train.yield saves %d : tensor<4xf32>
  } backward (%x3, %h3, %p3, %d3) {
    train.yield
  } weights (%x4, %h4, %p4, %d4) {
    %w = tx.mul %h4, %d4 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    train.yield %w : tensor<4xf32>
  } {order = #train.order<2 x (forward 0), 1 x (forward.1 0, backward.1 0, backward 0, forward 2, forward 3, forward.1 1, backward.1 1, backward 1, weights 0, weights 1), 2 x (forward.1 2, backward.1 2, backward 2, weights 2)>}
  return %0#0, %0#1 : tensor<f32>, tensor<4xf32>
}
