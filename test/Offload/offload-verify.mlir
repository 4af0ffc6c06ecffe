// RUN: partita-opt %s --offload-verify | FileCheck %s

train.parameter @w : tensor<4xf32> {offload.host}

// CHECK-LABEL: func @example
// CHECK: offload.to_device
func.func @example(%x: tensor<4xf32>) -> tensor<4xf32> {
  %h = train.read @w : tensor<4xf32>
  %w = offload.to_device %h : tensor<4xf32>
  %y = tx.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %new = offload.to_host %y : tensor<4xf32>
  train.write @w, %new : tensor<4xf32>
  return %y : tensor<4xf32>
}
