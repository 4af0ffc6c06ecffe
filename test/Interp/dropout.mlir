// Which elements are dropped follows from key, op and the element's number; test/Runtime/dropout_test.cpp has
// the same numbers. Without a key nothing is dropped.
// RUN: partita-interp %s --entry mask | FileCheck %s
// RUN: partita-interp %s --entry off | FileCheck %s --check-prefix=OFF

// CHECK: result 0: 2x8 = {{\[\[}}0, 2, 2, 0, 0, 0, 0, 2], [0, 2, 0, 2, 2, 2, 0, 2]]
func.func @mask() -> tensor<2x8xf64> {
  %x = tx.constant dense<1.0> : tensor<2x8xf64> : tensor<2x8xf64>
  %key = tx.constant dense<42> : tensor<i64> : tensor<i64>
  %micro = tx.constant dense<1> : tensor<i64> : tensor<i64>
  %y = tx.dropout %x ratio 0.5 id 3 key %key micro %micro : (tensor<2x8xf64>, tensor<i64>, tensor<i64>) -> tensor<2x8xf64>
  return %y : tensor<2x8xf64>
}

// OFF: result 0: 4 = [1, 1, 1, 1]
func.func @off() -> tensor<4xf64> {
  %x = tx.constant dense<1.0> : tensor<4xf64> : tensor<4xf64>
  %y = tx.dropout %x ratio 0.5 id 3 : (tensor<4xf64>) -> tensor<4xf64>
  return %y : tensor<4xf64>
}
