// What verify accepts, compile accepts: a tensor for which there is no kernel is refused by both, in the same words.
// RUN: rm -rf %t && mkdir %t
// RUN: not partita compile %s --objective mse --mesh dp=2 --no-build -o %t/program 2> %t/compile
// RUN: not partita verify %s --objective mse --mesh dp=2 > %t/out 2> %t/verify
// RUN: FileCheck %s < %t/compile && diff %t/compile %t/verify && count 0 < %t/out
// CHECK: error: 'tx.reshape' op has no kernel on this target for 'tensor<2x1x2x1x1x1x1x1x1xf32{{.*}}': it has 9 dimensions, more than 8
// A program of an earlier phase is not lowered.
// RUN: partita verify %s --objective mse --mesh dp=2 --compile-to optimize | FileCheck %s --check-prefix=EQUAL
// EQUAL: {{^}}equal: {{[0-9]+}} tensors

train.parameter @w : tensor<2x2xf32>

func.func @forward(%x: tensor<4x2xf32> {train.name = "x", train.role = "input"}) -> (tensor<4x2xf32> {train.name = "y"}) attributes {train.entry_point = #train.entry_point<forward>} {
  %w = train.read @w : tensor<2x2xf32>
  %h = tx.matmul %x, %w : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %r = tx.reshape %h : tensor<4x2xf32> -> tensor<4x1x2x1x1x1x1x1x1xf32>
  %e = tx.exp %r : (tensor<4x1x2x1x1x1x1x1x1xf32>) -> tensor<4x1x2x1x1x1x1x1x1xf32>
  %y = tx.reshape %e : tensor<4x1x2x1x1x1x1x1x1xf32> -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}
