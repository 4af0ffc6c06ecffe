// RUN: partita-opt %s --offload-activations="what=activations least-bytes=1" | FileCheck %s
// RUN: partita-opt %s --offload-activations=what=optimizer | FileCheck %s --check-prefix=NOTHING
// NOTHING-NOT: offload.
// RUN: partita-opt %s --offload-activations=what=activations 2>&1 | FileCheck %s --check-prefix=SMALL
// SMALL: warning: offload: activations: none of at least 65536 bytes waits for the backward pass of its layer; a lower --offload-threshold takes smaller ones
// SMALL-NOT: offload.to_host

// What the first layer saves goes and comes back; what the last saves stays. A view of it becomes one of what came back.
// CHECK-LABEL: func @example
// CHECK: %[[A:.*]] = tx.exp %arg0
// CHECK-NEXT: %[[H:.*]] = offload.to_host %[[A]] {train.layer = #train.layer<0 of 2>} : tensor<4x6xf32>
// CHECK-NEXT: tx.reshape %[[A]]
// CHECK: %[[B:.*]] = tx.exp
// CHECK: %[[BACK:.*]] = offload.to_device %[[H]] for "backward" {train.backward} : tensor<4x6xf32>
// CHECK-NEXT: %[[VIEW:.*]] = tx.reshape %[[BACK]]
// CHECK-NEXT: %[[D:.*]] = tx.mul %[[B]], %[[VIEW]]
func.func @example(%x: tensor<4x6xf32>) -> tensor<24xf32> {
  %a = tx.exp %x {train.layer = #train.layer<0 of 2>} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %r = tx.reshape %a {train.layer = #train.layer<0 of 2>} : tensor<4x6xf32> -> tensor<24xf32>
  %b = tx.exp %r {train.layer = #train.layer<1 of 2>} : (tensor<24xf32>) -> tensor<24xf32>
  %d = tx.mul %b, %r {train.backward} : (tensor<24xf32>, tensor<24xf32>) -> tensor<24xf32>
  return %d : tensor<24xf32>
}
