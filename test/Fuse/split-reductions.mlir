// RUN: partita-opt %s --split-reductions | FileCheck %s

// CHECK-LABEL: @mean(
// CHECK-NEXT:    %[[P:.*]] = tx.reduce_mean %arg0 [2, 3] : tensor<2x3x4x5xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %[[R:.*]] = tx.reduce_mean %[[P]] [0] : tensor<2x3xf32> -> tensor<3xf32>
// CHECK-NEXT:    return %[[R]]
func.func @mean(%x: tensor<2x3x4x5xf32>) -> tensor<3xf32> {
  %0 = tx.reduce_mean %x [0, 2, 3] : tensor<2x3x4x5xf32> -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// Three runs; the dimension of size one between two of them separates nothing.
// CHECK-LABEL: @max(
// CHECK-NEXT:    %[[P:.*]] = tx.reduce_max %arg0 [6] : tensor<2x3x4x1x5x6x7xf32> -> tensor<2x3x4x1x5x6xf32>
// CHECK-NEXT:    %[[Q:.*]] = tx.reduce_max %[[P]] [2, 4] : tensor<2x3x4x1x5x6xf32> -> tensor<2x3x1x6xf32>
// CHECK-NEXT:    tx.reduce_max %[[Q]] [0] : tensor<2x3x1x6xf32> -> tensor<3x1x6xf32>
func.func @max(%x: tensor<2x3x4x1x5x6x7xf32>) -> tensor<3x1x6xf32> {
  %0 = tx.reduce_max %x [6, 4, 0, 2] : tensor<2x3x4x1x5x6x7xf32> -> tensor<3x1x6xf32>
  return %0 : tensor<3x1x6xf32>
}

// A rank's shard: what the first sum leaves partial, the second keeps so.
// CHECK-LABEL: @placed(
// CHECK-NEXT:    %[[P:.*]] = tx.reduce_sum %arg0 [2] : tensor<2x3x4xf32, #par.place<[4 @dp, 3, 8 @tp]>> -> tensor<2x3xf32, #par.place<[4 @dp, 3], partial [tp]>>
// CHECK-NEXT:    tx.reduce_sum %[[P]] [0] : tensor<2x3xf32, #par.place<[4 @dp, 3], partial [tp]>> -> tensor<3xf32, #par.place<[3], partial [dp, tp]>>
func.func @placed(%x: tensor<2x3x4xf32, #par.place<[4 @dp, 3, 8 @tp]>>) -> tensor<3xf32, #par.place<[3], partial [dp, tp]>>
    attributes {par.no_cotangents} {
  %0 = tx.reduce_sum %x [0, 2] : tensor<2x3x4xf32, #par.place<[4 @dp, 3, 8 @tp]>> -> tensor<3xf32, #par.place<[3], partial [dp, tp]>>
  return %0 : tensor<3xf32, #par.place<[3], partial [dp, tp]>>
}

// Neighbours stay together.
// CHECK-LABEL: @full(
// CHECK-NEXT:    tx.reduce_sum %arg0 [0, 1]
// CHECK-NEXT:    return
func.func @full(%x: tensor<2x3x4xf32>) -> tensor<4xf32> {
  %0 = tx.reduce_sum %x [0, 1] : tensor<2x3x4xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
