// The gradients of one program of all stages: identities there, whatever crosses stages later.
// RUN: partita-interp %s --check-gradients | FileCheck %s

// CHECK: gradient of move: 0{{$}}
func.func @move(%x: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = pipe.move %x over <0 to 1> : tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: gradient of share: 0{{$}}
func.func @share(%x: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = pipe.share %x on [0, 1] : tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: gradient of pin: 0{{$}}
func.func @pin(%x: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = pipe.pin %x to 1 : tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: gradient of sum: 0{{$}}
func.func @sum(%x: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = pipe.sum %x on [0, 1] : tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
