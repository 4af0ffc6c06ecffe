// RUN: partita-opt %s --sink-reshapes | FileCheck %s

// CHECK-LABEL: @residual(
// CHECK-SAME:    %[[A:.*]]: tensor<8x6xf32>, %[[W:.*]]: tensor<6x4xf32>, %[[RES:.*]]: tensor<2x4x4xf32>
// CHECK-NEXT:    %[[P:.*]] = tx.matmul %[[A]], %[[W]]
// CHECK-NEXT:    %[[Q:.*]] = tx.reshape %[[RES]] : tensor<2x4x4xf32> -> tensor<8x4xf32>
// CHECK-NEXT:    %[[S:.*]] = tx.add %[[P]], %[[Q]]
// CHECK-NEXT:    %[[Y:.*]] = tx.reshape %[[S]] : tensor<8x4xf32> -> tensor<2x4x4xf32>
// CHECK-NEXT:    return %[[Y]]
func.func @residual(%a: tensor<8x6xf32>, %w: tensor<6x4xf32>, %res: tensor<2x4x4xf32>) -> tensor<2x4x4xf32> {
  %p = tx.matmul %a, %w : (tensor<8x6xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
  %r = tx.reshape %p : tensor<8x4xf32> -> tensor<2x4x4xf32>
  %y = tx.add %r, %res : (tensor<2x4x4xf32>, tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  return %y : tensor<2x4x4xf32>
}

// Of a matmul in 8 bits too.
// CHECK-LABEL: @scaled(
// CHECK: %[[P:.*]] = tx.scaled_matmul_nt
// CHECK-NEXT: %[[G:.*]] = tx.gelu_tanh %[[P]] : (tensor<8x6xbf16>)
// CHECK-NEXT: tx.reshape %[[G]]
func.func @scaled(%x: tensor<8x4xf8E4M3FN>, %w: tensor<6x4xf8E4M3FN>, %scales: tensor<2x1xf32>) -> tensor<2x4x6xbf16> {
  %p = tx.scaled_matmul_nt %x, %w scaled by %scales[0, 1] : (tensor<8x4xf8E4M3FN>, tensor<6x4xf8E4M3FN>, tensor<2x1xf32>) -> tensor<8x6xbf16>
  %r = tx.reshape %p : tensor<8x6xbf16> -> tensor<2x4x6xbf16>
  %g = tx.gelu_tanh %r : (tensor<2x4x6xbf16>) -> tensor<2x4x6xbf16>
  return %g : tensor<2x4x6xbf16>
}

// The next layer's residual finds the flat one; constants and row vectors are made in the new shape.
// CHECK-LABEL: @chain(
// CHECK:         %[[S:.*]] = tx.add
// CHECK:         %[[HALF:.*]] = tx.constant dense<5.{{0*}}e-01> : tensor<8x4xf32>
// CHECK-NEXT:    %[[M:.*]] = tx.mul %[[S]], %[[HALF]]
// CHECK-NEXT:    %[[B:.*]] = tx.broadcast %{{.*}} : tensor<4xf32> -> tensor<8x4xf32>
// CHECK-NEXT:    %[[T:.*]] = tx.add %[[M]], %[[B]]
// CHECK-NEXT:    %[[Y:.*]] = tx.reshape %[[T]] : tensor<8x4xf32> -> tensor<2x4x4xf32>
// CHECK-NEXT:    return %[[Y]]
func.func @chain(%a: tensor<8x6xf32>, %w: tensor<6x4xf32>, %res: tensor<8x4xf32>, %bias: tensor<4xf32>) -> tensor<2x4x4xf32> {
  %half = tx.constant dense<0.5> : tensor<2x4x4xf32> : tensor<2x4x4xf32>
  %b = tx.broadcast %bias : tensor<4xf32> -> tensor<2x4x4xf32>
  %res3 = tx.reshape %res : tensor<8x4xf32> -> tensor<2x4x4xf32>
  %p = tx.matmul %a, %w : (tensor<8x6xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
  %r = tx.reshape %p : tensor<8x4xf32> -> tensor<2x4x4xf32>
  %s = tx.add %r, %res3 : (tensor<2x4x4xf32>, tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  %m = tx.mul %s, %half : (tensor<2x4x4xf32>, tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  %y = tx.add %m, %b : (tensor<2x4x4xf32>, tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  return %y : tensor<2x4x4xf32>
}

// Placements follow.
// CHECK-LABEL: @split(
// CHECK:         tx.add %{{.*}} : (tensor<4x4xf32, #par.place<[8 @dp, 4]>>, tensor<4x4xf32, #par.place<[8 @dp, 4]>>)
module attributes {par.mesh = #par.mesh<dp = 2>} {
  func.func @split(%a: tensor<4x6xf32, #par.place<[8 @dp, 6]>>, %w: tensor<6x4xf32>, %res: tensor<1x4x4xf32, #par.place<[2 @dp, 4, 4]>>) -> tensor<1x4x4xf32, #par.place<[2 @dp, 4, 4]>> attributes {par.no_cotangents} {
    %p = tx.matmul %a, %w : (tensor<4x6xf32, #par.place<[8 @dp, 6]>>, tensor<6x4xf32>) -> tensor<4x4xf32, #par.place<[8 @dp, 4]>>
    %r = tx.reshape %p : tensor<4x4xf32, #par.place<[8 @dp, 4]>> -> tensor<1x4x4xf32, #par.place<[2 @dp, 4, 4]>>
    %y = tx.add %r, %res : (tensor<1x4x4xf32, #par.place<[2 @dp, 4, 4]>>, tensor<1x4x4xf32, #par.place<[2 @dp, 4, 4]>>) -> tensor<1x4x4xf32, #par.place<[2 @dp, 4, 4]>>
    return %y : tensor<1x4x4xf32, #par.place<[2 @dp, 4, 4]>>
  }
}

// A value that is read in its own shape, too, stays: moving would not make neighbours.
// CHECK-LABEL: @shared(
// CHECK:         tx.reshape
// CHECK-NEXT:    tx.add %{{.*}} : (tensor<2x4x4xf32>
func.func @shared(%a: tensor<8x6xf32>, %w: tensor<6x4xf32>, %res: tensor<2x4x4xf32>) -> (tensor<2x4x4xf32>, tensor<8x4xf32>) {
  %p = tx.matmul %a, %w : (tensor<8x6xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
  %r = tx.reshape %p : tensor<8x4xf32> -> tensor<2x4x4xf32>
  %y = tx.add %r, %res : (tensor<2x4x4xf32>, tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  return %y, %p : tensor<2x4x4xf32>, tensor<8x4xf32>
}
