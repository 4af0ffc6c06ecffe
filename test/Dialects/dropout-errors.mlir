// RUN: partita-opt %s --split-input-file --verify-diagnostics | FileCheck %s

func.func @ratio(%x: tensor<4xf32>) {
  // expected-error @below {{has a ratio of 1.500000e+00, expected one between 0 and 1}}
  %0 = tx.dropout %x ratio 1.5 id 1 : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

!heads = tensor<2x4x3x8xf32>
func.func @ratio_of_attention(%q: !heads) {
  // expected-error @below {{has a ratio of 1.500000e+00, expected one between 0 and 1}}
  %0:2 = tx.attention %q, %q, %q scale 0.5 dropout 1.5 id 1 : (!heads, !heads, !heads) -> (!heads, tensor<2x3x4xf32>)
  return
}

// -----

!heads = tensor<2x4x3x8xf32>
func.func @no_ratio(%q: !heads, %key: tensor<i64>) {
  // expected-error @below {{has a key of dropout, but no ratio}}
  %0:2 = tx.attention %q, %q, %q scale 0.5 key %key micro %key : (!heads, !heads, !heads, tensor<i64>, tensor<i64>) -> (!heads, tensor<2x3x4xf32>)
  return
}

// -----

!heads = tensor<2x4x3x8xf32>
func.func @no_id(%q: !heads) {
  // expected-error @below {{needs both a ratio and an id of its dropout, or neither}}
  %0:2 = "tx.attention"(%q, %q, %q) {scale = 0.5 : f64, ratio = 0.5 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0>} : (!heads, !heads, !heads) -> (!heads, tensor<2x3x4xf32>)
  return
}

// -----

// On one rank: the number of its shard's first probability, in the full tensor [b, h, s, t].
// CHECK-LABEL: @shard(
// CHECK:       tx.attention %{{.*}} dropout 5.000000e-01 id 1 key %{{.*}} micro %{{.*}} first %{{.*}} of [4, 3, 4, 4]
module attributes {par.mesh = #par.mesh<dp = 2>} {
  func.func @shard(%q: tensor<2x4x3x8xf32, #par.place<[4 @dp, 4, 3, 8]>>, %key: tensor<i64>) {
    %first = par.first_element of tensor<2x3x4x4xf32, #par.place<[4 @dp, 3, 4, 4]>> : tensor<1xi64, #par.place<[2 @dp]>>
    %0:2 = tx.attention %q, %q, %q scale 0.5 dropout 0.5 id 1 key %key micro %key first %first of [4, 3, 4, 4] : (tensor<2x4x3x8xf32, #par.place<[4 @dp, 4, 3, 8]>>, tensor<2x4x3x8xf32, #par.place<[4 @dp, 4, 3, 8]>>, tensor<2x4x3x8xf32, #par.place<[4 @dp, 4, 3, 8]>>, tensor<i64>, tensor<i64>, tensor<1xi64, #par.place<[2 @dp]>>) -> (tensor<2x4x3x8xf32, #par.place<[4 @dp, 4, 3, 8]>>, tensor<2x3x4xf32, #par.place<[4 @dp, 3, 4]>>)
    return
  }
}

// -----

module attributes {par.mesh = #par.mesh<dp = 2>} {
  func.func @no_shape(%q: tensor<2x4x3x8xf32, #par.place<[4 @dp, 4, 3, 8]>>, %key: tensor<i64>) {
    %first = par.first_element of tensor<2x3x4x4xf32, #par.place<[4 @dp, 3, 4, 4]>> : tensor<1xi64, #par.place<[2 @dp]>>
    // expected-error @below {{needs the full shape of 'tensor<2x3x4x4xf32, #par.place<[4 @dp, 3, 4, 4]>>' where it is a shard}}
    %0:2 = tx.attention %q, %q, %q scale 0.5 dropout 0.5 id 1 key %key micro %key first %first of [4] : (tensor<2x4x3x8xf32, #par.place<[4 @dp, 4, 3, 8]>>, tensor<2x4x3x8xf32, #par.place<[4 @dp, 4, 3, 8]>>, tensor<2x4x3x8xf32, #par.place<[4 @dp, 4, 3, 8]>>, tensor<i64>, tensor<i64>, tensor<1xi64, #par.place<[2 @dp]>>) -> (tensor<2x4x3x8xf32, #par.place<[4 @dp, 4, 3, 8]>>, tensor<2x3x4xf32, #par.place<[4 @dp, 3, 4]>>)
    return
  }
}
