// An elementwise op is its scalar expression, in double precision.
// RUN: partita-interp %s | FileCheck %s --check-prefixes=CHECK,EXACT
// RUN: partita-interp %s --round-casts | FileCheck %s --check-prefixes=CHECK,ROUND

// CHECK-LABEL: @functions
// CHECK-NEXT: result 0: 3 = [-0.158655, 0, 0.841345]
// CHECK-NEXT: result 1: 3 = [-0.158808, 0, 0.841192]
// CHECK-NEXT: result 2: 3 = [0.268941, 0.5, 0.731059]
// CHECK-NEXT: result 3: 3 = [0.367879, 1, 2.71828]
// CHECK-NEXT: result 4: 3 = [inf, inf, 1]
func.func @functions() -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %x = tx.iota -1.0, 1.0 : tensor<3xf32>
  %zero = tx.constant dense<[0.0, 0.0, 1.0]> : tensor<3xf32> : tensor<3xf32>
  %0 = tx.gelu %x : (tensor<3xf32>) -> tensor<3xf32>
  %1 = tx.gelu_tanh %x : (tensor<3xf32>) -> tensor<3xf32>
  %2 = tx.sigmoid %x : (tensor<3xf32>) -> tensor<3xf32>
  %3 = tx.exp %x : (tensor<3xf32>) -> tensor<3xf32>
  %4 = tx.reciprocal %zero : (tensor<3xf32>) -> tensor<3xf32>
  return %0, %1, %2, %3, %4 : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
}

// CHECK-LABEL: @integers
// CHECK-NEXT: result 0: 3 = [-2, 0, 3]
// CHECK-NEXT: result 1: 3 = [1, 0, 0]
// CHECK-NEXT: result 2: 3 = [-100, 0, 7]
func.func @integers() -> (tensor<3xi64>, tensor<3xi1>, tensor<3xi64>) {
  %a = tx.constant dense<[-5, 1, 7]> : tensor<3xi64> : tensor<3xi64>
  %b = tx.constant dense<2> : tensor<3xi64> : tensor<3xi64>
  %0 = tx.div %a, %b : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  %one = tx.constant dense<1> : tensor<3xi64> : tensor<3xi64>
  %1 = tx.less %a, %one : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi1>
  %c = tx.constant dense<-100> : tensor<3xi64> : tensor<3xi64>
  %m = tx.mul %0, %one : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  %d = tx.constant dense<[0, 0, 7]> : tensor<3xi64> : tensor<3xi64>
  %2 = tx.select %1, %c, %d : (tensor<3xi1>, tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  return %m, %1, %2 : tensor<3xi64>, tensor<3xi1>, tensor<3xi64>
}

// CHECK-LABEL: @casts
// CHECK-NEXT: result 0: 4 = [1, -1, 0, 2]
// CHECK-NEXT: result 1: 4 = [1, 1, 1, 1]
// EXACT-NEXT: result 2: 4 = [1.00391, -1.5, 0.1, 2.7]
// ROUND-NEXT: result 2: 4 = [1, -1.5, 0.100098, 2.70312]
// EXACT-NEXT: result 3: 4 = [1.00391, -1.5, 0.1, 2.7]
// ROUND-NEXT: result 3: 4 = [1.00391, -1.5, 0.0999756, 2.69922]
func.func @casts() -> (tensor<4xi64>, tensor<4xi1>, tensor<4xbf16>, tensor<4xf16>) {
  %x = tx.constant dense<[1.00390625, -1.5, 0.1, 2.7]> : tensor<4xf64> : tensor<4xf64>
  %0 = tx.cast %x : tensor<4xf64> -> tensor<4xi64>
  %1 = tx.cast %x : tensor<4xf64> -> tensor<4xi1>
  %2 = tx.cast %x : tensor<4xf64> -> tensor<4xbf16>
  %3 = tx.cast %x : tensor<4xf64> -> tensor<4xf16>
  return %0, %1, %2, %3 : tensor<4xi64>, tensor<4xi1>, tensor<4xbf16>, tensor<4xf16>
}

// What is not a number stays none.
// CHECK-LABEL: @not_a_number
// CHECK-NEXT: result 0: 3 = [nan, 0, 2]
func.func @not_a_number() -> tensor<3xf32> {
  %x = tx.constant dense<[0x7FC00000, -1.0, 2.0]> : tensor<3xf32> : tensor<3xf32>
  %0 = tx.relu %x : (tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
