// RUN: partita-opt %s --split-input-file --verify-diagnostics | FileCheck %s

module attributes {par.mesh = #par.mesh<dp = 2, tp = 2>} {
// Rows that dp splits, and blocks that tp splits: a chunk has fewer of them.
// CHECK-LABEL: func.func @chunks
// CHECK: par.chunk %arg0 1 of 2 along 0 : tensor<64x4xf32, #par.place<[8 @dp x 32 @tp, 4]>> -> tensor<32x4xf32, #par.place<[4 @dp x 32 @tp, 4]>>
// CHECK: par.join %{{.*}}, %{{.*}} along 0 : tensor<32x4xf32, {{.*}}>, tensor<32x4xf32, {{.*}}> -> tensor<64x4xf32, #par.place<[8 @dp x 32 @tp, 4]>>
func.func @chunks(%x: tensor<64x4xf32, #par.place<[8 @dp x 32 @tp, 4]>>) -> tensor<64x4xf32, #par.place<[8 @dp x 32 @tp, 4]>> attributes {par.no_cotangents} {
  %0 = par.chunk %x 0 of 2 along 0 : tensor<64x4xf32, #par.place<[8 @dp x 32 @tp, 4]>> -> tensor<32x4xf32, #par.place<[4 @dp x 32 @tp, 4]>>
  %1 = par.chunk %x 1 of 2 along 0 : tensor<64x4xf32, #par.place<[8 @dp x 32 @tp, 4]>> -> tensor<32x4xf32, #par.place<[4 @dp x 32 @tp, 4]>>
  %y = par.join %0, %1 along 0 : tensor<32x4xf32, #par.place<[4 @dp x 32 @tp, 4]>>, tensor<32x4xf32, #par.place<[4 @dp x 32 @tp, 4]>> -> tensor<64x4xf32, #par.place<[8 @dp x 32 @tp, 4]>>
  return %y : tensor<64x4xf32, #par.place<[8 @dp x 32 @tp, 4]>>
}
}

// -----

func.func @number(%x: tensor<4x4xf32>) -> tensor<2x4xf32> {
  // expected-error @+1 {{takes chunk 2 of 2, which are numbered from 0}}
  %0 = par.chunk %x 2 of 2 along 0 : tensor<4x4xf32> -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

func.func @unequal(%x: tensor<4x4xf32>) -> tensor<1x4xf32> {
  // expected-error @+1 {{along dimension 0 of 'tensor<4x4xf32>', which has no 3 equal chunks there}}
  %0 = par.chunk %x 0 of 3 along 0 : tensor<4x4xf32> -> tensor<1x4xf32>
  return %0 : tensor<1x4xf32>
}

// -----

func.func @nowhere(%x: tensor<4x4xf32>) -> tensor<2x4xf32> {
  // expected-error @+1 {{along dimension 2 of 'tensor<4x4xf32>', which has no 2 equal chunks there}}
  %0 = par.chunk %x 0 of 2 along 2 : tensor<4x4xf32> -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

func.func @type(%x: tensor<2x4xf32>) -> tensor<4x4xf32> {
  // expected-error @+1 {{has a chunk of type 'tensor<2x4xf32>', expected 'tensor<4x4xf32>'}}
  %0 = par.join %x along 0 : tensor<2x4xf32> -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

module attributes {par.mesh = #par.mesh<tp = 2>} {
// Blocks of which a chunk would have half of one.
func.func @blocks(%x: tensor<12x4xf32, #par.place<[3 x 8 @tp, 4]>>) -> tensor<6x4xf32, #par.place<[3 x 4 @tp, 4]>> attributes {par.no_cotangents} {
  // expected-error @+1 {{which has no 2 equal chunks there}}
  %0 = par.chunk %x 0 of 2 along 0 : tensor<12x4xf32, #par.place<[3 x 8 @tp, 4]>> -> tensor<6x4xf32, #par.place<[3 x 4 @tp, 4]>>
  return %0 : tensor<6x4xf32, #par.place<[3 x 4 @tp, 4]>>
}
}

// -----

// Four blocks are two of each rank of dp.
module attributes {par.mesh = #par.mesh<dp = 2, tp = 2>} {
func.func @blocks_of_a_rank(%x: tensor<4x4xf32, #par.place<[4 @dp x 4 @tp, 4]>>) -> tensor<1x4xf32, #par.place<[4 @dp @tp, 4]>> attributes {par.no_cotangents} {
  // expected-error @+1 {{which has no 4 equal chunks there}}
  %0 = par.chunk %x 0 of 4 along 0 : tensor<4x4xf32, #par.place<[4 @dp x 4 @tp, 4]>> -> tensor<1x4xf32, #par.place<[4 @dp @tp, 4]>>
  return %0 : tensor<1x4xf32, #par.place<[4 @dp @tp, 4]>>
}
}
