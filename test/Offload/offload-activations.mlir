// RUN: partita-opt %s --offload-activations="what=activations least-bytes=1" | FileCheck %s
// RUN: partita-opt %s --offload-activations=what=optimizer | FileCheck %s --check-prefix=NOTHING
// NOTHING-NOT: offload.
// RUN: partita-opt %s --offload-activations=what=activations 2>&1 | FileCheck %s --check-prefix=SMALL
// SMALL: warning: offload: activations: none of at least 65536 bytes waits for the backward pass of its layer; a lower --offload-threshold takes smaller ones
// SMALL-NOT: offload.to_host

#first = loc(fused<#train.layer<0 of 2>>["first"])
#last = loc(fused<#train.layer<1 of 2>>["last"])
#back = loc(fused<"backward">["back"])

// What the first layer saves goes and comes back; what the last saves stays. A view of it becomes one of what came back.
// CHECK-LABEL: func @example
// CHECK: %[[A:.*]] = tx.exp %arg0
// CHECK-NEXT: %[[H:.*]] = offload.to_host %[[A]] : tensor<4x6xf32>
// CHECK-NEXT: tx.reshape %[[A]]
// CHECK: %[[B:.*]] = tx.exp
// CHECK: %[[BACK:.*]] = offload.to_device %[[H]] for "backward" : tensor<4x6xf32>
// CHECK-NEXT: %[[VIEW:.*]] = tx.reshape %[[BACK]]
// CHECK-NEXT: %[[D:.*]] = tx.mul %[[B]], %[[VIEW]]
func.func @example(%x: tensor<4x6xf32>) -> tensor<24xf32> {
  %a = tx.exp %x : (tensor<4x6xf32>) -> tensor<4x6xf32> loc(#first)
  %r = tx.reshape %a : tensor<4x6xf32> -> tensor<24xf32> loc(#first)
  %b = tx.exp %r : (tensor<24xf32>) -> tensor<24xf32> loc(#last)
  %d = tx.mul %b, %r : (tensor<24xf32>, tensor<24xf32>) -> tensor<24xf32> loc(#back)
  return %d : tensor<24xf32>
}
