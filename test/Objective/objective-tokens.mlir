// Tokens are known by their use, whatever inputs are called: rows of the largest table are looked up by them.
// RUN: partita-opt %s --split-input-file --objective | FileCheck %s

// CHECK: func.func @forward(%{{.*}} {train.batch = 0 : i64, train.name = "a", train.role = "data"}, %{{.*}} {train.batch = 0 : i64, train.name = "b", train.role = "ids"}, %{{.*}} {train.batch = 0 : i64, train.name = "c", train.role = "data"})
func.func @forward(%a: tensor<2x4xi64> {train.name = "a"}, %b: tensor<2x4xi32> {train.name = "b", train.role = "input"}, %c: tensor<2x4xi64> {train.name = "c"}) -> (tensor<2x4x16xf32> {train.name = "y"}) attributes {train.entry_point = #train.entry_point<forward>} {
  %table = train.read @table : tensor<16x2xf32>
  %kinds = train.read @kinds : tensor<3x2xf32>
  %places = train.read @places : tensor<8x2xf32>
  %x = tx.embedding %kinds, %a : (tensor<3x2xf32>, tensor<2x4xi64>) -> tensor<2x4x2xf32>
  %wide = tx.cast %b : tensor<2x4xi32> -> tensor<2x4xi64>
  %y = tx.embedding %table, %wide : (tensor<16x2xf32>, tensor<2x4xi64>) -> tensor<2x4x2xf32>
  %z = tx.embedding %places, %c : (tensor<8x2xf32>, tensor<2x4xi64>) -> tensor<2x4x2xf32>
  %s = tx.add %x, %y : (tensor<2x4x2xf32>, tensor<2x4x2xf32>) -> tensor<2x4x2xf32>
  %t = tx.add %s, %z : (tensor<2x4x2xf32>, tensor<2x4x2xf32>) -> tensor<2x4x2xf32>
  %scores = tx.matmul_nt %t, %table : (tensor<2x4x2xf32>, tensor<16x2xf32>) -> tensor<2x4x16xf32>
  return %scores : tensor<2x4x16xf32>
}
train.parameter @table : tensor<16x2xf32>
train.parameter @kinds : tensor<3x2xf32>
train.parameter @places : tensor<8x2xf32>

// -----

// What is called input_ids and looks up nothing is no token; of two equal tables nothing says which is theirs.
// CHECK: func.func @forward(%{{.*}} {train.batch = 0 : i64, train.name = "input_ids", train.role = "data"}, %{{.*}} {train.batch = 0 : i64, train.name = "b", train.role = "data"}, %{{.*}} {train.batch = 0 : i64, train.name = "c", train.role = "data"})
func.func @forward(%a: tensor<2x4xi64> {train.name = "input_ids"}, %b: tensor<2x4xi64> {train.name = "b"}, %c: tensor<2x4xi64> {train.name = "c"}) -> (tensor<2x4x2xf32> {train.name = "y"}) attributes {train.entry_point = #train.entry_point<forward>} {
  %left = train.read @left : tensor<16x2xf32>
  %right = train.read @right : tensor<16x2xf32>
  %f = tx.cast %a : tensor<2x4xi64> -> tensor<2x4xf32>
  %r = tx.reshape %f : tensor<2x4xf32> -> tensor<2x4x1xf32>
  %x = tx.broadcast %r : tensor<2x4x1xf32> -> tensor<2x4x2xf32>
  %y = tx.embedding %left, %b : (tensor<16x2xf32>, tensor<2x4xi64>) -> tensor<2x4x2xf32>
  %z = tx.embedding %right, %c : (tensor<16x2xf32>, tensor<2x4xi64>) -> tensor<2x4x2xf32>
  %s = tx.add %x, %y : (tensor<2x4x2xf32>, tensor<2x4x2xf32>) -> tensor<2x4x2xf32>
  %t = tx.add %s, %z : (tensor<2x4x2xf32>, tensor<2x4x2xf32>) -> tensor<2x4x2xf32>
  return %t : tensor<2x4x2xf32>
}
train.parameter @left : tensor<16x2xf32>
train.parameter @right : tensor<16x2xf32>
