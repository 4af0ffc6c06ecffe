// RUN: partita-opt %s --split-input-file --verify-diagnostics | partita-opt --split-input-file | FileCheck %s
!p = tensor<3x5xf32, #par.place<[3, 5], partial [dp]>>
!s = tensor<8xf32, #par.place<[3, 5], flat [dp]>>
!sent = tensor<2x1x8xi8, #par.place<[2, 2 @dp, 8]>>
!received = tensor<1x2x8xi8, #par.place<[2 @dp, 2, 8]>>

// CHECK-LABEL: func.func @forms
// CHECK: zero.reduce_scatter %arg0 over "dp" in int4 blocks of 8 because "gradient"
// CHECK: %[[C:.*]] = zero.quantize_chunks %arg0 over "dp" by 8
// CHECK: %[[R:.*]] = zero.exchange_chunks %[[C]] over "dp" because "gradient"
// CHECK: zero.sum_chunks %[[R]] over "dp" by 8
// CHECK: zero.exchange_chunks_start %[[C]] over "dp"
module attributes {par.mesh = #par.mesh<dp = 2>} {
  func.func @forms(%x: !p) -> (!s, !s, !s) attributes {par.no_cotangents} {
    %a = zero.reduce_scatter %x over "dp" in int4 blocks of 8 because "gradient" : !p -> !s
    %c = zero.quantize_chunks %x over "dp" by 8 : !p -> !sent
    %r = zero.exchange_chunks %c over "dp" because "gradient" : !sent -> !received
    %b = zero.sum_chunks %r over "dp" by 8 : !received -> !s
    %t, %f = zero.exchange_chunks_start %c over "dp" : !sent -> i64, !received
    %w = par.wait %t, %f : i64, !received -> !received
    %d = zero.sum_chunks %w over "dp" by 8 : !received -> !s
    return %a, %b, %d : !s, !s, !s
  }
}

// -----

module attributes {par.mesh = #par.mesh<dp = 2>} {
  func.func @block(%x: tensor<4xf32, #par.place<[4], partial [dp]>>) {
    // expected-error @+1 {{rounds in blocks of 12, expected a multiple of 8, the numbers of a word}}
    %a = zero.reduce_scatter %x over "dp" in int4 blocks of 12 : tensor<4xf32, #par.place<[4], partial [dp]>> -> tensor<2xf32, #par.place<[4], flat [dp]>>
    return
  }
}

// -----

module attributes {par.mesh = #par.mesh<dp = 2>} {
  func.func @integers(%x: tensor<4xi64, #par.place<[4], partial [dp]>>) {
    // expected-error @+1 {{rounds floats, found}}
    %a = zero.reduce_scatter %x over "dp" in int4 blocks of 8 : tensor<4xi64, #par.place<[4], partial [dp]>> -> tensor<2xi64, #par.place<[4], flat [dp]>>
    return
  }
}

// -----

module attributes {par.mesh = #par.mesh<dp = 2>} {
  func.func @full(%x: tensor<4xf32>) {
    // expected-error @+1 {{over "dp" expects values that are partial, it is invariant}}
    %a = zero.quantize_chunks %x over "dp" by 8 : tensor<4xf32> -> tensor<2x1x8xi8, #par.place<[2, 2 @dp, 8]>>
    return
  }
}

// -----

module attributes {par.mesh = #par.mesh<dp = 2>} {
  func.func @bytes(%x: tensor<4xf32, #par.place<[4], partial [dp]>>) {
    // expected-error @+1 {{over "dp" in blocks of 8 yields 'tensor<2x1x8xi8, #par.place<[2, 2 @dp, 8]>>', not 'tensor<2x1x4xi8, #par.place<[2, 2 @dp, 4]>>'}}
    %a = zero.quantize_chunks %x over "dp" by 8 : tensor<4xf32, #par.place<[4], partial [dp]>> -> tensor<2x1x4xi8, #par.place<[2, 2 @dp, 4]>>
    return
  }
}

// -----

module attributes {par.mesh = #par.mesh<dp = 2>} {
  func.func @none() {
    // expected-error @+1 {{needs at least one value}}
    %a = "zero.quantize_chunks"() {axis = "dp", block = 8 : i64} : () -> tensor<2x1x8xi8, #par.place<[2, 2 @dp, 8]>>
    return
  }
}

// -----

module attributes {par.mesh = #par.mesh<dp = 2>} {
  func.func @there(%x: tensor<1x2x8xi8, #par.place<[2 @dp, 2, 8]>>) {
    // expected-error @+1 {{over "dp" expects chunks of senders along this axis, in the last dimension but one; it is}}
    %a = zero.exchange_chunks %x over "dp" : tensor<1x2x8xi8, #par.place<[2 @dp, 2, 8]>> -> tensor<1x2x8xi8, #par.place<[2 @dp, 2, 8]>>
    return
  }
}

// -----

module attributes {par.mesh = #par.mesh<dp = 2>} {
  func.func @stays(%x: tensor<2x1x8xi8, #par.place<[2, 2 @dp, 8]>>) {
    // expected-error @+1 {{over "dp" yields 'tensor<1x2x8xi8, #par.place<[2 @dp, 2, 8]>>', not}}
    %a = zero.exchange_chunks %x over "dp" : tensor<2x1x8xi8, #par.place<[2, 2 @dp, 8]>> -> tensor<2x1x8xi8, #par.place<[2, 2 @dp, 8]>>
    return
  }
}

// -----

module attributes {par.mesh = #par.mesh<dp = 2>} {
  func.func @sum(%x: tensor<1x2x8xi8, #par.place<[2 @dp, 2, 8]>>) {
    // expected-error @+1 {{over "dp" needs flat shards over this axis, found 'tensor<4xf32>'}}
    %a = zero.sum_chunks %x over "dp" by 8 : tensor<1x2x8xi8, #par.place<[2 @dp, 2, 8]>> -> tensor<4xf32>
    return
  }
}

// -----

module attributes {par.mesh = #par.mesh<dp = 2>} {
  func.func @receivers(%x: tensor<3x1x8xi8, #par.place<[3, 2 @dp, 8]>>) {
    // expected-error @+1 {{over "dp" expects a chunk from each of 2 ranks to each, found 'tensor<3x1x8xi8, #par.place<[3, 2 @dp, 8]>>'}}
    %a = zero.exchange_chunks %x over "dp" : tensor<3x1x8xi8, #par.place<[3, 2 @dp, 8]>> -> tensor<2x2x8xi8, #par.place<[3 @dp, 2, 8]>>
    return
  }
}

// -----

module attributes {par.mesh = #par.mesh<dp = 2>} {
  func.func @block(%x: tensor<8xf32, #par.place<[8], partial [dp]>>) {
    // expected-error @+1 {{rounds in blocks of 12, expected a multiple of 8, the numbers of a word}}
    %a = zero.quantize_chunks %x over "dp" by 12 : tensor<8xf32, #par.place<[8], partial [dp]>> -> tensor<2x1x8xi8, #par.place<[2, 2 @dp, 8]>>
    return
  }
}
