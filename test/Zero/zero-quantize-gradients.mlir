// RUN: partita-opt %s --split-input-file --zero-quantize-gradients="on=true block=20 exact=kept" | FileCheck %s
// RUN: partita-opt %s --split-input-file --zero-quantize-gradients="block=64" | FileCheck %s --check-prefix=OFF
// RUN: not partita-opt %s --zero-quantize-gradients="on=true block=4" 2>&1 | FileCheck %s --check-prefix=BLOCK
// RUN: not partita-opt %s --zero-quantize-gradients="on=true stage=0" 2>&1 | FileCheck %s --check-prefix=STAGE
// RUN: not partita-opt %s --zero-quantize-gradients="on=true exact=w,kept" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not partita-opt %s --zero-quantize-gradients="on=true exact=x" 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not partita-opt %s --zero-quantize-gradients="on=true exact=kept,[sv]*" 2>&1 | FileCheck %s --check-prefix=IDLE
// RUN: not partita-opt %s --zero-quantize-gradients="on=true weights=true exact=kept,small,vector" 2>&1 | FileCheck %s --check-prefix=VECTOR
// OFF-NOT: int4
// IDLE: error: keep-exact: '[sv]*' has no effect: vector and all others that it names would be exact without it: rounded are gradients of parameters of two or more dimensions
// VECTOR: error: keep-exact: 'vector' has no effect: vector would be exact
// BLOCK: error: --gradient-quantization-block: 4: a block is whole words of 8 numbers; give at least 8
// STAGE: error: --zero-quantized-gradients: with --zero-stage 0 every rank keeps the sums of all gradients; give --zero-stage 1, 2 or 3
// NONE: error: --zero-quantized-gradients: has no effect, because no gradient of a parameter of two or more dimensions that --keep-exact leaves is scattered over ranks
// NAME: error: keep-exact: {{.*}}'x'

// From the update back: over one axis after another, through sums over micro-batches, casts and sums of shards. Blocks have a multiple of 8
// elements. What is exact: a vector's gradient, one that a pattern names, one whose chunks would not be smaller, and what no update takes.
module attributes {par.mesh = #par.mesh<dp = 2, fsdp = 2>} {
  train.parameter @w : tensor<4x8xf32>
  train.parameter @kept : tensor<4x8xf32>
  train.parameter @vector : tensor<32xf32>
  train.parameter @small : tensor<2x2xf32>
  // CHECK-LABEL: func.func @example
  // CHECK: zero.reduce_scatter %{{.*}} over "fsdp" in int4 blocks of 16 because "gradient" : tensor<4x8xf32
  // CHECK: zero.reduce_scatter %{{.*}} over "dp" in int4 blocks of 16 because "gradient" : tensor<16xf32
  // CHECK-COUNT-4: zero.reduce_scatter %{{.*}} over "fsdp" because "gradient"
  func.func @example(%batch: tensor<2x1xf32>, %g: tensor<4x8xf32, #par.place<[4, 8], partial [dp, fsdp]>>, %k: tensor<4x8xf32, #par.place<[4, 8], partial [fsdp]>>, %v: tensor<32xf32, #par.place<[32], partial [fsdp]>>, %s: tensor<2x2xf32, #par.place<[2, 2], partial [fsdp]>>, %rate: tensor<f32>) attributes {par.no_cotangents} {
    %w = train.read @w : tensor<8xf32, #par.place<[4, 8], flat [fsdp, dp]>>
    %wk = train.read @kept : tensor<16xf32, #par.place<[4, 8], flat [fsdp]>>
    %wv = train.read @vector : tensor<16xf32, #par.place<[32], flat [fsdp]>>
    %ws = train.read @small : tensor<2xf32, #par.place<[2, 2], flat [fsdp]>>
    %sum = train.accumulate (%micro = %batch) : (tensor<2x1xf32>) -> tensor<8xf32, #par.place<[4, 8], flat [fsdp, dp]>> {
      %near = zero.reduce_scatter %g over "fsdp" because "gradient" : tensor<4x8xf32, #par.place<[4, 8], partial [dp, fsdp]>> -> tensor<16xf32, #par.place<[4, 8], partial [dp], flat [fsdp]>>
      %far = zero.reduce_scatter %near over "dp" because "gradient" : tensor<16xf32, #par.place<[4, 8], partial [dp], flat [fsdp]>> -> tensor<8xf32, #par.place<[4, 8], flat [fsdp, dp]>>
      %twice = tx.add %far, %far : (tensor<8xf32, #par.place<[4, 8], flat [fsdp, dp]>>, tensor<8xf32, #par.place<[4, 8], flat [fsdp, dp]>>) -> tensor<8xf32, #par.place<[4, 8], flat [fsdp, dp]>>
      train.yield %twice : tensor<8xf32, #par.place<[4, 8], flat [fsdp, dp]>>
    }
    %gk = zero.reduce_scatter %k over "fsdp" because "gradient" : tensor<4x8xf32, #par.place<[4, 8], partial [fsdp]>> -> tensor<16xf32, #par.place<[4, 8], flat [fsdp]>>
    %gv = zero.reduce_scatter %v over "fsdp" because "gradient" : tensor<32xf32, #par.place<[32], partial [fsdp]>> -> tensor<16xf32, #par.place<[32], flat [fsdp]>>
    %gs = zero.reduce_scatter %s over "fsdp" because "gradient" : tensor<2x2xf32, #par.place<[2, 2], partial [fsdp]>> -> tensor<2xf32, #par.place<[2, 2], flat [fsdp]>>
    %other = zero.reduce_scatter %k over "fsdp" because "gradient" : tensor<4x8xf32, #par.place<[4, 8], partial [fsdp]>> -> tensor<16xf32, #par.place<[4, 8], flat [fsdp]>>
    %w1 = train.sgd %w, %sum, %rate {decay = 0.0} : (tensor<8xf32, #par.place<[4, 8], flat [fsdp, dp]>>, tensor<8xf32, #par.place<[4, 8], flat [fsdp, dp]>>, tensor<f32>) -> tensor<8xf32, #par.place<[4, 8], flat [fsdp, dp]>>
    train.write @w, %w1 : tensor<8xf32, #par.place<[4, 8], flat [fsdp, dp]>>
    %k1 = train.sgd %wk, %gk, %rate {decay = 0.0} : (tensor<16xf32, #par.place<[4, 8], flat [fsdp]>>, tensor<16xf32, #par.place<[4, 8], flat [fsdp]>>, tensor<f32>) -> tensor<16xf32, #par.place<[4, 8], flat [fsdp]>>
    train.write @kept, %k1 : tensor<16xf32, #par.place<[4, 8], flat [fsdp]>>
    %v1 = train.sgd %wv, %gv, %rate {decay = 0.0} : (tensor<16xf32, #par.place<[32], flat [fsdp]>>, tensor<16xf32, #par.place<[32], flat [fsdp]>>, tensor<f32>) -> tensor<16xf32, #par.place<[32], flat [fsdp]>>
    train.write @vector, %v1 : tensor<16xf32, #par.place<[32], flat [fsdp]>>
    %s1 = train.sgd %ws, %gs, %rate {decay = 0.0} : (tensor<2xf32, #par.place<[2, 2], flat [fsdp]>>, tensor<2xf32, #par.place<[2, 2], flat [fsdp]>>, tensor<f32>) -> tensor<2xf32, #par.place<[2, 2], flat [fsdp]>>
    train.write @small, %s1 : tensor<2xf32, #par.place<[2, 2], flat [fsdp]>>
    return
  }
}
