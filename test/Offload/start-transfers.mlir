// RUN: partita-opt %s --start-transfers | FileCheck %s

train.parameter @w : tensor<4xf32> {offload.host}

// CHECK-LABEL: func @example
// CHECK: %[[T:.*]], %[[BUFFER:.*]] = offload.to_device_start
// CHECK-NEXT: %[[X:.*]] = tx.relu %arg0
// CHECK-NEXT: %[[W:.*]] = offload.wait %[[T]], %[[BUFFER]] : tensor<4xf32>
// CHECK-NEXT: tx.mul %[[X]], %[[W]]
func.func @example(%0: tensor<4xf32>) -> tensor<4xf32> {
  %h = train.read @w : tensor<4xf32>
  %w = offload.to_device %h : tensor<4xf32>
  %x = tx.relu %0 : (tensor<4xf32>) -> tensor<4xf32>
  %y = tx.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// A start has all attributes of the copy, also a plugin's.
// CHECK-LABEL: func @foreign
// CHECK: offload.to_device_start %{{[^ ]*}} {experiment.bits = 4 : i64} : tensor<4xf32>
// CHECK: offload.wait %{{[^ ]*}}, %{{[^ ]*}} : tensor<4xf32>
func.func @foreign(%0: tensor<4xf32>) -> tensor<4xf32> {
  %h = train.read @w : tensor<4xf32>
  %w = offload.to_device %h {experiment.bits = 4 : i64} : tensor<4xf32>
  %x = tx.relu %0 : (tensor<4xf32>) -> tensor<4xf32>
  %y = tx.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// A copy to the host is complete where the second one after it begins.
// CHECK-LABEL: func @two_under_way
// CHECK: %[[TA:.*]], %[[A:.*]] = offload.to_host_start %arg0
// CHECK: %[[TB:.*]], %[[B:.*]] = offload.to_host_start
// CHECK: %[[HA:.*]] = offload.wait %[[TA]], %[[A]]
// CHECK-NEXT: %[[TC:.*]], %[[C:.*]] = offload.to_host_start
// CHECK: offload.wait %[[TC]], %[[C]]
func.func @two_under_way(%a: tensor<4xf32>) -> tensor<4xf32> {
  %ha = offload.to_host %a : tensor<4xf32>
  %b = tx.exp %a : (tensor<4xf32>) -> tensor<4xf32>
  %hb = offload.to_host %b : tensor<4xf32>
  %c = tx.exp %b : (tensor<4xf32>) -> tensor<4xf32>
  %hc = offload.to_host %c : tensor<4xf32>
  %d = tx.exp %c : (tensor<4xf32>) -> tensor<4xf32>
  %0 = offload.to_device %hc : tensor<4xf32>
  return %0 : tensor<4xf32>
}
