// RUN: partita-opt %s --offload-activations="what=activations least-bytes=1" | FileCheck %s
// RUN: partita-opt %s --offload-activations="what=activations least-bytes=1" --offload-verify -o /dev/null
// RUN: partita-opt %s --offload-activations=what=optimizer | FileCheck %s --check-prefix=NOTHING
// NOTHING-NOT: offload.
// RUN: partita-opt %s --offload-activations=what=activations 2>&1 | FileCheck %s --check-prefix=SMALL
// SMALL: warning: offload: activations: no saved activation of at least 65536 bytes can be offloaded; lower --offload-threshold
// SMALL-NOT: offload.to_host

// What the first layer saves goes and comes back; what the last saves stays.
// CHECK-LABEL: func @example
// CHECK: %[[A:.*]] = tx.exp %{{.*}}
// CHECK-NEXT: %[[H:.*]] = offload.to_host %[[A]] {train.layer = #train.layer<0 of 2>} : tensor<4x6xf32>
// CHECK-NEXT: %[[B:.*]] = tx.exp %[[A]]
// CHECK-NEXT: train.yield %[[B]] : tensor<4x6xf32> saves %[[B]], %[[H]] :
// CHECK-NEXT: } backward (%{{.*}}, %[[B1:.*]], %[[H1:.*]]) {
// CHECK-NEXT: %[[BACK:.*]] = offload.to_device %[[H1]] for "backward" {train.backward} : tensor<4x6xf32>
// CHECK-NEXT: tx.mul %[[B1]], %[[BACK]]
func.func @example(%xs: tensor<1x4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  %s:2 = train.accumulate (%x = %xs) : (tensor<1x4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
    %a = tx.exp %x {train.layer = #train.layer<0 of 2>} : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %b = tx.exp %a {train.layer = #train.layer<1 of 2>} : (tensor<4x6xf32>) -> tensor<4x6xf32>
    train.yield %b : tensor<4x6xf32> saves %b, %a : tensor<4x6xf32>, tensor<4x6xf32>
  } backward (%x1, %b1, %a1) {
    %d = tx.mul %b1, %a1 {train.backward} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    train.yield %d : tensor<4x6xf32>
  }
  return %s#0, %s#1 : tensor<4x6xf32>, tensor<4x6xf32>
}
