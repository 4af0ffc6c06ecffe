// RUN: partita-opt %s --plan-memory -o %t.mlir && FileCheck %s < %t.mlir
// RUN: partita-interp %s --entry train_step | FileCheck %s --check-prefix=VALUE
// RUN: partita-interp %t.mlir --entry train_step | FileCheck %s --check-prefix=VALUE

// VALUE: result 0: 2 = [288, 2304]

// What is offloaded waits in blocks of pinned memory, as many as micro-batches are in flight; %s stays in the arena.
// CHECK: rt.pinned_bytes = 192
// CHECK-LABEL: func.func @train_step
// CHECK: offload.to_host {{.*}}rt.buffers = [#rt.at<in_flight 0>]
// CHECK: offload.to_device {{.*}}rt.buffers = [#rt.at<arena
// CHECK: rt.in_flight = #rt.in_flight<3 x 64 at 0 pinned, 3 x 64 at {{[0-9]+}}>
module {
func.func @train_step() -> tensor<2xf32> attributes {train.entry_point = #train.entry_point<train_step>} {
  %xs = tx.constant dense<[[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]> : tensor<3x2xf32> : tensor<3x2xf32>
  %0 = train.accumulate (%x = %xs) : (tensor<3x2xf32>) -> (tensor<2xf32>) {
    %h = tx.add %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %c = offload.to_host %h : tensor<2xf32>
    %s = tx.mul %h, %h : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    train.yield saves %c, %s : tensor<2xf32>, tensor<2xf32>
  } backward (%x1, %c1, %s1) {
    %b = offload.to_device %c1 for "backward" : tensor<2xf32>
    %w = tx.mul %b, %s1 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    train.yield %w : tensor<2xf32>
  } {order = #train.order<3 x (forward 0), 3 x (backward 0)>}
  return %0 : tensor<2xf32>
}
}
