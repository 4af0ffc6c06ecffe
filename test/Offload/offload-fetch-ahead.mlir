// RUN: partita-opt %s --offload-fetch-ahead | FileCheck %s
// RUN: partita-opt %s --offload-fetch-ahead=ahead-bytes=48 | FileCheck %s --check-prefix=AHEAD
// RUN: partita-opt %s --offload-fetch-ahead=group-bytes=16 | FileCheck %s --check-prefix=GROUP
// RUN: not partita-opt %s --offload-fetch-ahead=ahead-bytes=-1 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: error: group-bytes=25000000 ahead-bytes=-1, expected none below 0

train.parameter @a : tensor<4xf32> {offload.host}
train.parameter @b : tensor<4xf32> {offload.host}
train.parameter @c : tensor<4xf32> {offload.host}

// A layer's parameter comes while the layer before it is computed; 16 bytes each.
// CHECK-LABEL: func @example
// CHECK: %[[A:.*]] = offload.to_device
// CHECK: %[[B:.*]] = offload.to_device
// CHECK-NEXT: %[[X:.*]] = tx.mul %arg0, %[[A]]
// CHECK: %[[C:.*]] = offload.to_device
// CHECK-NEXT: tx.mul %[[X]], %[[B]]
// CHECK-NEXT: tx.mul %{{.*}}, %[[C]]
// AHEAD-LABEL: func @example
// AHEAD-COUNT-3: offload.to_device
// AHEAD: tx.mul
func.func @example(%x: tensor<4xf32>) -> tensor<4xf32> {
  %ha = train.read @a : tensor<4xf32>
  %a = offload.to_device %ha : tensor<4xf32>
  %0 = tx.mul %x, %a {train.layer = #train.layer<0 of 3>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %hb = train.read @b : tensor<4xf32>
  %b = offload.to_device %hb : tensor<4xf32>
  %1 = tx.mul %0, %b {train.layer = #train.layer<1 of 3>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %hc = train.read @c : tensor<4xf32>
  %c = offload.to_device %hc : tensor<4xf32>
  %2 = tx.mul %1, %c {train.layer = #train.layer<2 of 3>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// What went to the host in this block comes back after it at the earliest.
// CHECK-LABEL: func @no_earlier
// CHECK: tx.exp
// CHECK-NEXT: %[[Y:.*]] = tx.exp
// CHECK-NEXT: %[[H:.*]] = offload.to_host %[[Y]]
// CHECK-NEXT: offload.to_device %[[H]]
func.func @no_earlier(%x: tensor<4xf32>) -> tensor<4xf32> {
  %h = offload.to_host %x : tensor<4xf32>
  %a = offload.to_device %h : tensor<4xf32>
  %0 = tx.exp %a {train.layer = #train.layer<0 of 3>} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = tx.exp %0 {train.layer = #train.layer<0 of 3>} : (tensor<4xf32>) -> tensor<4xf32>
  %h1 = offload.to_host %1 : tensor<4xf32>
  %2 = tx.exp %1 {train.layer = #train.layer<1 of 3>} : (tensor<4xf32>) -> tensor<4xf32>
  %b = offload.to_device %h1 : tensor<4xf32>
  %3 = tx.mul %2, %b {train.layer = #train.layer<1 of 3>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %3 : tensor<4xf32>
}

// The two parameters of a layer come together, or one while the other is used.
// CHECK-LABEL: func @group
// CHECK-COUNT-3: offload.to_device
// CHECK: tx.mul
// GROUP-LABEL: func @group
// GROUP-COUNT-2: offload.to_device
// GROUP: tx.mul
// GROUP: offload.to_device
// GROUP-NEXT: tx.mul
func.func @group(%x: tensor<4xf32>) -> tensor<4xf32> {
  %ha = train.read @a : tensor<4xf32>
  %a = offload.to_device %ha : tensor<4xf32>
  %0 = tx.mul %x, %a {train.layer = #train.layer<0 of 3>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %hb = train.read @b : tensor<4xf32>
  %b = offload.to_device %hb : tensor<4xf32>
  %1 = tx.mul %0, %b {train.layer = #train.layer<1 of 3>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %hc = train.read @c : tensor<4xf32>
  %c = offload.to_device %hc : tensor<4xf32>
  %2 = tx.mul %1, %c {train.layer = #train.layer<1 of 3>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
