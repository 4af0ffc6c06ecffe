// RUN: partita-interp %s | FileCheck %s

// CHECK-LABEL: @constant
// CHECK-NEXT: result 0: 2x2 = {{\[\[}}1, 2], [3, -4]]
// CHECK-NEXT: result 1: 2 = [1, 0]
// CHECK-NEXT: result 2: = -7
func.func @constant() -> (tensor<2x2xf32>, tensor<2xi1>, tensor<i64>) {
  %0 = tx.constant dense<[[1.0, 2.0], [3.0, -4.0]]> : tensor<2x2xf32> : tensor<2x2xf32>
  %1 = tx.constant dense<[true, false]> : tensor<2xi1> : tensor<2xi1>
  %2 = tx.constant dense<-7> : tensor<i64> : tensor<i64>
  return %0, %1, %2 : tensor<2x2xf32>, tensor<2xi1>, tensor<i64>
}

// CHECK-LABEL: @iota
// CHECK-NEXT: result 0: 4 = [5, 3, 1, -1]
// CHECK-NEXT: result 1: 3 = [0, 0.5, 1]
func.func @iota() -> (tensor<4xi64>, tensor<3xf32>) {
  %0 = tx.iota 5.0, -2.0 : tensor<4xi64>
  %1 = tx.iota 0.0, 0.5 : tensor<3xf32>
  return %0, %1 : tensor<4xi64>, tensor<3xf32>
}

// CHECK-LABEL: @shapes
// CHECK-NEXT: result 0: 3x2 = {{\[\[}}0, 1], [2, 3], [4, 5]]
// CHECK-NEXT: result 1: 3x2 = {{\[\[}}0, 3], [1, 4], [2, 5]]
// CHECK-NEXT: result 2: 2x3x2 = {{\[\[\[}}0, 0], [1, 1], [2, 2]], {{\[\[}}0, 0], [1, 1], [2, 2]]]
func.func @shapes() -> (tensor<3x2xf32>, tensor<3x2xf32>, tensor<2x3x2xf32>) {
  %i = tx.iota 0.0, 1.0 : tensor<6xf32>
  %x = tx.reshape %i : tensor<6xf32> -> tensor<2x3xf32>
  %0 = tx.reshape %x : tensor<2x3xf32> -> tensor<3x2xf32>
  %1 = tx.transpose %x [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
  %j = tx.iota 0.0, 1.0 : tensor<3xf32>
  %k = tx.reshape %j : tensor<3xf32> -> tensor<3x1xf32>
  %2 = tx.broadcast %k : tensor<3x1xf32> -> tensor<2x3x2xf32>
  return %0, %1, %2 : tensor<3x2xf32>, tensor<3x2xf32>, tensor<2x3x2xf32>
}

// CHECK-LABEL: @cuts
// CHECK-NEXT: result 0: 2x2 = {{\[\[}}1, 3], [5, 7]]
// CHECK-NEXT: result 1: 2x4 = {{\[\[}}3, 2, 1, 0], [7, 6, 5, 4]]
// CHECK-NEXT: result 2: 2x4 = {{\[\[}}0, 1, 0, 3], [0, 5, 0, 7]]
// CHECK-NEXT: result 3: 2x3 = {{\[\[}}1, 3, 1], [5, 7, 5]]
func.func @cuts() -> (tensor<2x2xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x3xf32>) {
  %i = tx.iota 0.0, 1.0 : tensor<8xf32>
  %x = tx.reshape %i : tensor<8xf32> -> tensor<2x4xf32>
  %0 = tx.slice %x [0, 1] by [1, 2] : tensor<2x4xf32> -> tensor<2x2xf32>
  %1 = tx.slice %x [0, 3] by [1, -1] : tensor<2x4xf32> -> tensor<2x4xf32>
  %2 = tx.pad %0 [0, 1] by [1, 2] : tensor<2x2xf32> -> tensor<2x4xf32>
  %3 = tx.slice %0 [0, 0] by [1, 1] : tensor<2x2xf32> -> tensor<2x1xf32>
  %4 = tx.concat %0, %3 along 1 : (tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
  return %0, %1, %2, %4 : tensor<2x2xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x3xf32>
}

// CHECK-LABEL: @reductions
// CHECK-NEXT: result 0: 2 = [6, 22]
// CHECK-NEXT: result 1: 4 = [2, 3, 4, 5]
// CHECK-NEXT: result 2: = 7
func.func @reductions() -> (tensor<2xf32>, tensor<4xf32>, tensor<f32>) {
  %i = tx.iota 0.0, 1.0 : tensor<8xf32>
  %x = tx.reshape %i : tensor<8xf32> -> tensor<2x4xf32>
  %0 = tx.reduce_sum %x [1] : tensor<2x4xf32> -> tensor<2xf32>
  %1 = tx.reduce_mean %x [0] : tensor<2x4xf32> -> tensor<4xf32>
  %2 = tx.reduce_max %x [0, 1] : tensor<2x4xf32> -> tensor<f32>
  return %0, %1, %2 : tensor<2xf32>, tensor<4xf32>, tensor<f32>
}
