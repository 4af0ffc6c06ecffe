// RUN: partita-opt %s --pass-pipeline='builtin.module(func.func(raise-attention{remarks},canonicalize))' --split-input-file --verify-diagnostics | FileCheck %s

// A mask of a quarter of a million positions is read row by row in runs of equal elements: a row costs what it has of runs.

// CHECK-LABEL: @causal(
// CHECK:         tx.attention {{.*}} scale 1.000000e+00 causal
func.func @causal(%q: tensor<1x1x262144x8xf32>, %k: tensor<1x1x8x262144xf32>, %v: tensor<1x1x262144x8xf32>) -> tensor<1x1x262144x8xf32> {
  %lowest = tx.constant dense<-3.40282347E+38> : tensor<262144x262144xf32> : tensor<262144x262144xf32>
  %zero = tx.constant dense<0.0> : tensor<262144x262144xf32> : tensor<262144x262144xf32>
  %i = tx.iota 0.0, 1.0 : tensor<262144xi64>
  %row = tx.reshape %i : tensor<262144xi64> -> tensor<262144x1xi64>
  %rows = tx.broadcast %row : tensor<262144x1xi64> -> tensor<262144x262144xi64>
  %cols = tx.broadcast %i : tensor<262144xi64> -> tensor<262144x262144xi64>
  %tril = tx.less_equal %cols, %rows : (tensor<262144x262144xi64>, tensor<262144x262144xi64>) -> tensor<262144x262144xi1>
  %mask = tx.select %tril, %zero, %lowest : (tensor<262144x262144xi1>, tensor<262144x262144xf32>, tensor<262144x262144xf32>) -> tensor<262144x262144xf32>
  %mask4 = tx.reshape %mask : tensor<262144x262144xf32> -> tensor<1x1x262144x262144xf32>
  %s = tx.batch_matmul %q, %k : (tensor<1x1x262144x8xf32>, tensor<1x1x8x262144xf32>) -> tensor<1x1x262144x262144xf32>
  %masked = tx.add %s, %mask4 : (tensor<1x1x262144x262144xf32>, tensor<1x1x262144x262144xf32>) -> tensor<1x1x262144x262144xf32>
  %p = tx.softmax %masked : (tensor<1x1x262144x262144xf32>) -> tensor<1x1x262144x262144xf32>
  // expected-remark@+1 {{raised to tx.attention}}
  %o = tx.batch_matmul %p, %v : (tensor<1x1x262144x262144xf32>, tensor<1x1x262144x8xf32>) -> tensor<1x1x262144x8xf32>
  return %o : tensor<1x1x262144x8xf32>
}

// -----

// A window of 4 by the distance of query and key, which the file computes in 32-bit integers and casts.
// CHECK-LABEL: @window(
// CHECK:         tx.attention {{.*}} causal window 4
func.func @window(%q: tensor<1x1x65536x8xf32>, %k: tensor<1x1x8x65536xf32>, %v: tensor<1x1x65536x8xf32>) -> tensor<1x1x65536x8xf32> {
  %lowest = tx.constant dense<-3.40282347E+38> : tensor<1x1x65536x65536xf32> : tensor<1x1x65536x65536xf32>
  %zero = tx.constant dense<0.0> : tensor<65536x65536xf32> : tensor<65536x65536xf32>
  %reach = tx.constant dense<4.0> : tensor<65536x65536xf32> : tensor<65536x65536xf32>
  %i = tx.iota 0.0, 1.0 : tensor<65536xi32>
  %row = tx.reshape %i : tensor<65536xi32> -> tensor<65536x1xi32>
  %rows = tx.broadcast %row : tensor<65536x1xi32> -> tensor<65536x65536xi32>
  %cols = tx.broadcast %i : tensor<65536xi32> -> tensor<65536x65536xi32>
  %far = tx.sub %rows, %cols : (tensor<65536x65536xi32>, tensor<65536x65536xi32>) -> tensor<65536x65536xi32>
  %distance = tx.cast %far : tensor<65536x65536xi32> -> tensor<65536x65536xf32>
  %behind = tx.greater_equal %distance, %zero : (tensor<65536x65536xf32>, tensor<65536x65536xf32>) -> tensor<65536x65536xi1>
  %near = tx.less %distance, %reach : (tensor<65536x65536xf32>, tensor<65536x65536xf32>) -> tensor<65536x65536xi1>
  %seen = tx.and %behind, %near : (tensor<65536x65536xi1>, tensor<65536x65536xi1>) -> tensor<65536x65536xi1>
  %seen4 = tx.reshape %seen : tensor<65536x65536xi1> -> tensor<1x1x65536x65536xi1>
  %s = tx.batch_matmul %q, %k : (tensor<1x1x65536x8xf32>, tensor<1x1x8x65536xf32>) -> tensor<1x1x65536x65536xf32>
  %masked = tx.select %seen4, %s, %lowest : (tensor<1x1x65536x65536xi1>, tensor<1x1x65536x65536xf32>, tensor<1x1x65536x65536xf32>) -> tensor<1x1x65536x65536xf32>
  %p = tx.softmax %masked : (tensor<1x1x65536x65536xf32>) -> tensor<1x1x65536x65536xf32>
  // expected-remark@+1 {{raised to tx.attention}}
  %o = tx.batch_matmul %p, %v : (tensor<1x1x65536x65536xf32>, tensor<1x1x65536x8xf32>) -> tensor<1x1x65536x8xf32>
  return %o : tensor<1x1x65536x8xf32>
}

// -----

// One key too many, in one row: it stays a bias.
// CHECK-LABEL: @one_key_too_many(
// CHECK-NOT:     causal
// CHECK:         tx.attention {{.*}} bias
// CHECK-NOT:     causal
func.func @one_key_too_many(%q: tensor<1x1x65536x8xf32>, %k: tensor<1x1x8x65536xf32>, %v: tensor<1x1x65536x8xf32>) -> tensor<1x1x65536x8xf32> {
  %lowest = tx.constant dense<-3.40282347E+38> : tensor<1x1x65536x65536xf32> : tensor<1x1x65536x65536xf32>
  %odd = tx.constant dense<40000> : tensor<65536x65536xi64> : tensor<65536x65536xi64>
  %next = tx.constant dense<40001> : tensor<65536x65536xi64> : tensor<65536x65536xi64>
  %i = tx.iota 0.0, 1.0 : tensor<65536xi64>
  %row = tx.reshape %i : tensor<65536xi64> -> tensor<65536x1xi64>
  %rows = tx.broadcast %row : tensor<65536x1xi64> -> tensor<65536x65536xi64>
  %cols = tx.broadcast %i : tensor<65536xi64> -> tensor<65536x65536xi64>
  %tril = tx.less_equal %cols, %rows : (tensor<65536x65536xi64>, tensor<65536x65536xi64>) -> tensor<65536x65536xi1>
  %isRow = tx.equal %rows, %odd : (tensor<65536x65536xi64>, tensor<65536x65536xi64>) -> tensor<65536x65536xi1>
  %isKey = tx.equal %cols, %next : (tensor<65536x65536xi64>, tensor<65536x65536xi64>) -> tensor<65536x65536xi1>
  %is = tx.and %isRow, %isKey : (tensor<65536x65536xi1>, tensor<65536x65536xi1>) -> tensor<65536x65536xi1>
  %seen = tx.or %tril, %is : (tensor<65536x65536xi1>, tensor<65536x65536xi1>) -> tensor<65536x65536xi1>
  %seen4 = tx.reshape %seen : tensor<65536x65536xi1> -> tensor<1x1x65536x65536xi1>
  %s = tx.batch_matmul %q, %k : (tensor<1x1x65536x8xf32>, tensor<1x1x8x65536xf32>) -> tensor<1x1x65536x65536xf32>
  %masked = tx.select %seen4, %s, %lowest : (tensor<1x1x65536x65536xi1>, tensor<1x1x65536x65536xf32>, tensor<1x1x65536x65536xf32>) -> tensor<1x1x65536x65536xf32>
  %p = tx.softmax %masked : (tensor<1x1x65536x65536xf32>) -> tensor<1x1x65536x65536xf32>
  // expected-remark@+1 {{raised to tx.attention}}
  %o = tx.batch_matmul %p, %v : (tensor<1x1x65536x65536xf32>, tensor<1x1x65536x8xf32>) -> tensor<1x1x65536x8xf32>
  return %o : tensor<1x1x65536x8xf32>
}
