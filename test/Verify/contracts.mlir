// RUN: partita-opt %s --split-input-file --verify-diagnostics --verify-phase=after=schedule

// A row of the table for each; the phase is one after all that ask.

// objective: all layers lost, by which recomputation and stages decide. A program whose layers nobody has counted has none.
module attributes {train.work = [#train.work<place = 0, matmuls = 8.0, elementwise = 0.0, backward = 0.0, parameters = 0>]} {
  func.func @kept(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = tx.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    %1 = tx.exp %x {train.layer = #train.layer<0 of 1>} : (tensor<4xf32>) -> tensor<4xf32>
    return %0, %1 : tensor<4xf32>, tensor<4xf32>
  }
  func.func @constants() -> tensor<4xf32> {
    %0 = tx.constant dense<1.0> : tensor<4xf32> : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  // expected-error@+1 {{'func.func' op has no op with train.layer, although train.work records the work of layers after phase 'schedule'}}
  func.func @lost(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = tx.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

// One function whose ops count no layers, beside one that has layers: reports by layer would leave it out.
func.func @layers(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tx.exp %x {train.layer = #train.layer<0 of 1>} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// expected-error@+1 {{'func.func' op has a train.layer of 0 layers, although the model has layers after phase 'schedule'}}
func.func @no_layers(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tx.exp %x {train.layer = #train.layer<-1 of 0>} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// stages
// expected-error@+1 {{'builtin.module' op is of pipeline stages but has no pipe.axis after phase 'schedule'}}
module attributes {pipe.stages = 2} {
}

// -----

// expected-error@+1 {{'builtin.module' op is of pipeline stages but has no pipe.cuts after phase 'schedule'}}
module attributes {pipe.stages = 2, pipe.axis = 0} {
}

// -----

// precision
func.func @rounds(%x: tensor<4xbf16>) -> tensor<4xbf16> {
  // expected-error@+1 {{'tx.exp' op rounds a result to 16 bits that stays in 32 after phase 'schedule'}}
  %0 = tx.exp %x : (tensor<4xbf16>) -> tensor<4xbf16>
  return %0 : tensor<4xbf16>
}

// -----

// Gradients have the types of what they are gradients of; what needs no precision follows its operands.
func.func @follows(%x: tensor<4xbf16>) -> tensor<4xbf16> {
  %0 = tx.exp %x {train.backward} : (tensor<4xbf16>) -> tensor<4xbf16>
  return %0 : tensor<4xbf16>
}
func.func @relu(%x: tensor<4xbf16>) -> tensor<4xbf16> {
  %0 = tx.relu %x : (tensor<4xbf16>) -> tensor<4xbf16>
  return %0 : tensor<4xbf16>
}

// -----

// partition
#pair = #train.sharding<"pair" by "up_proj", dims = [1], blocks = [1], shards = [2], devices = [array<i64: 0>, array<i64: 1>]>
// expected-error@+1 {{'train.parameter' op has train.shardings after phase 'schedule'}}
train.parameter @up : tensor<4x16xf32> {train.shardings = [#pair]}

// -----

module attributes {par.mesh = #par.mesh<tp = 2>} {
  func.func @sum(%x: tensor<4xf32, #par.place<[4], partial [tp]>>) -> tensor<4xf32> {
    // expected-error@+1 {{'par.all_reduce' op has no par.causes after phase 'schedule'; a pass gives each new op the location of the op that it replaces; in IR edited by hand, write the attribute}}
    %0 = par.all_reduce %x over "tp" because "gradient" : tensor<4xf32, #par.place<[4], partial [tp]>> -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

// The terms of a norm have none.
module attributes {par.mesh = #par.mesh<dp = 2>} {
  train.parameter @w : tensor<4xf32>
  func.func @norm(%x: tensor<1xf64, #par.place<[1], partial [dp]>>) -> tensor<1xf64> {
    %0 = par.all_reduce %x over "dp" because "norm of the gradients" : tensor<1xf64, #par.place<[1], partial [dp]>> -> tensor<1xf64>
    return %0 : tensor<1xf64>
  }
  func.func @gathers() -> tensor<4xf32> attributes {par.no_cotangents} {
    %0 = train.read @w : tensor<2xf32, #par.place<[4], flat [dp]>>
    // expected-error@+1 {{'zero.gather' op has no par.causes after phase 'schedule'}}
    %1 = zero.gather %0 over "dp" because "parameter" : tensor<2xf32, #par.place<[4], flat [dp]>> -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}

// -----

// A rank's shard is what the mesh makes of the placement.
module attributes {par.mesh = #par.mesh<dp = 4>} {
  func.func @mesh(%x: tensor<8xf32>) {
    // expected-error@+1 {{'tx.constant' op does not fit the mesh #par.mesh<dp = 4> after phase 'schedule': one rank's shard is 'tensor<2xf32, #par.place<[8 @dp]>>', the type says 'tensor<4xf32, #par.place<[8 @dp]>>'}}
    %0 = tx.constant dense<1.0> : tensor<4xf32> : tensor<4xf32, #par.place<[8 @dp]>>
    return
  }
}

// -----

module attributes {par.mesh = #par.mesh<tp = 2>} {
  // expected-error@+1 {{'func.func' op does not fit the mesh #par.mesh<tp = 2> after phase 'schedule': placement over "dp", an axis that the mesh #par.mesh<tp = 2> lacks}}
  func.func @axis(%x: tensor<4xf32, #par.place<[8 @dp]>>) {
    return
  }
}

// -----

// parameters
module attributes {par.mesh = #par.mesh<dp = 2>} {
  train.parameter @w : tensor<4xf32>
  func.func @shards() -> tensor<2xf32, #par.place<[4], flat [dp]>> attributes {par.no_cotangents} {
    %0 = train.read @w : tensor<2xf32, #par.place<[4], flat [dp]>>
    // expected-error@+1 {{'tx.relu' op computes with shards of a parameter that no gather has made full after phase 'schedule'}}
    %1 = tx.relu %0 : (tensor<2xf32, #par.place<[4], flat [dp]>>) -> tensor<2xf32, #par.place<[4], flat [dp]>>
    return %1 : tensor<2xf32, #par.place<[4], flat [dp]>>
  }
}

// -----

// differentiate: what computes with an op of the backward pass, when it has no region of its own.
func.func @direction(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tx.neg %x {train.backward} : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error@+1 {{'tx.relu' op is of the backward pass but has no train.backward after phase 'schedule'; a pass gives each new op the location of the op that it replaces; in IR edited by hand, write the attribute}}
  %1 = tx.relu %0 : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// optimize: the gradient is that of a loop's sum, or a constant where the loss does not depend on the parameter.
func.func @gradient(%p: tensor<4xf32>, %xs: tensor<2x4xf32>, %rate: tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = tx.constant dense<0.0> : tensor<4xf32> : tensor<4xf32>
  %0 = train.sgd %p, %zero, %rate {decay = 0.1} : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %sum = train.accumulate (%x = %xs) : (tensor<2x4xf32>) -> tensor<4xf32> {
    %1 = tx.neg %x : (tensor<4xf32>) -> tensor<4xf32>
    train.yield %1 : tensor<4xf32>
  }
  // expected-error@+1 {{'train.sgd' op takes a gradient from an op without train.backward after phase 'schedule'}}
  %2 = train.sgd %p, %sum, %rate {decay = 0.1} : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %0, %2 : tensor<4xf32>, tensor<4xf32>
}

// -----

// fuse
func.func @kernel(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>, %b: tensor<6xf32>) -> tensor<8x6xf32> {
  // expected-error@+1 {{'tx.matmul_bias' op is present after phase 'schedule', but phase 'fuse' creates it}}
  %0 = tx.matmul_bias %x, %w plus %b : (tensor<8x4xf32>, tensor<4x6xf32>, tensor<6xf32>) -> tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}

// -----

// overlap
module attributes {par.mesh = #par.mesh<dp = 2>} {
  func.func @poll() {
    // expected-error@+1 {{'par.poll' op is present after phase 'schedule', but phase 'overlap' creates it; run a pass of your own that creates it after that phase}}
    par.poll over "dp" bytes 16
    return
  }
}

// -----

// optimize's ops before it
// RUN: not partita-opt %s --split-input-file --verify-phase=after=partition 2>&1 | FileCheck %s --check-prefix=EARLY
// EARLY: error: 'train.sgd' op is present after phase 'partition', but phase 'optimize' creates it

// Dimensions of size one lie between no elements.
// RUN: not partita-opt %s --split-input-file --verify-phase=after=fuse 2>&1 | FileCheck %s --check-prefix=FUSE
// FUSE: contracts.mlir:[[# @LINE + 6]]:8: error: 'tx.reduce_sum' op reduces dimensions that are not adjacent after phase 'fuse'
func.func @adjacent(%x: tensor<2x1x4xf32>) -> tensor<1xf32> {
  %0 = tx.reduce_sum %x [0, 2] : tensor<2x1x4xf32> -> tensor<1xf32>
  return %0 : tensor<1xf32>
}
func.func @apart(%x: tensor<2x3x4xf32>) -> tensor<3xf32> {
  %0 = tx.reduce_sum %x [0, 2] : tensor<2x3x4xf32> -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
