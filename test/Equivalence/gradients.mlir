// The pass `differentiate` against differences of the loss, executed: on two ranks, through loops over
// micro-batches, values used several times, ops with several results. (Each op's own gradient:
// test/Rules/ops.mlir.)
// RUN: partita-opt %s --differentiate -o %t.mlir
// RUN: partita-interp %t.mlir --check-updates --entry accumulated --init perturbed | FileCheck %s --check-prefix=ACCUMULATED
// RUN: partita-interp %t.mlir --check-updates --entry tied --init perturbed | FileCheck %s --check-prefix=TIED
// RUN: partita-interp %t.mlir --check-updates --entry block --init perturbed | FileCheck %s --check-prefix=BLOCK
// RUN: partita-interp %t.mlir --check-updates --entry moves --init perturbed | FileCheck %s --check-prefix=MOVES
// RUN: partita-opt %s --differentiate --gather-again --expand-conjugates --join-slice-gradients --canonicalize --cse --bucket-all-reduces --start-collectives -o %t.overlap.mlir
// RUN: partita-interp %t.overlap.mlir --check-updates --entry accumulated --init perturbed | FileCheck %s --check-prefix=ACCUMULATED
// RUN: partita-interp %t.overlap.mlir --check-updates --entry tied --init perturbed | FileCheck %s --check-prefix=TIED
// RUN: partita-interp %t.overlap.mlir --check-updates --entry block --init perturbed | FileCheck %s --check-prefix=BLOCK
// RUN: partita-interp %t.overlap.mlir --check-updates --entry moves --init perturbed | FileCheck %s --check-prefix=MOVES

// A gradient that is wrong by a factor is found.
// RUN: sed "s/tx.constant dense<1.0.*> : tensor<f32>.* : tensor<f32>/tx.constant dense<1.5> : tensor<f32> : tensor<f32>/" %t.mlir > %t.wrong.mlir
// RUN: not partita-interp %t.wrong.mlir --check-updates --entry tied --init perturbed 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: error: the gradient of 'w' differs from the numeric one by

// A whole model, exported, compiled for two ranks.
// RUN: partita compile %data/gpt2_tiny_dynamo_sdpa.onnx --dim batch=2 --dim sequence=4 --mesh dp=2 --accumulate 2 --compile-to differentiate -o %t.model.mlir
// RUN: partita-interp %t.model.mlir --check-updates --entry train_step --init perturbed --samples 1 --tolerance 1e-7 | FileCheck %s --check-prefix=MODEL
// MODEL: gradient of transformer.h.1.attn.c_attn.weight

module attributes {par.mesh = #par.mesh<dp = 2>} {
train.parameter @w : tensor<4x6xf32>
train.parameter @b : tensor<6xf32>
train.parameter @frozen : tensor<6xf32> frozen
train.parameter @qkv : tensor<4x12xf32>
train.parameter @scale : tensor<4xf32>
train.parameter @shift : tensor<4xf32>

// ACCUMULATED: gradient of b
// ACCUMULATED-NEXT: gradient of w
// ACCUMULATED-NOT: frozen
func.func @accumulated(%x: tensor<3x4x4xf32, #par.place<[3, 8 @dp, 4]>>) -> tensor<f32> {
  %w = train.read @w : tensor<4x6xf32>
  %b = train.read @b : tensor<6xf32>
  %z = train.read @frozen : tensor<6xf32>
  %f = par.f %w over "dp" : tensor<4x6xf32> -> tensor<4x6xf32, #par.place<[4, 6], replicated [dp]>>
  %fb = par.f %b over "dp" : tensor<6xf32> -> tensor<6xf32, #par.place<[6], replicated [dp]>>
  %fz = par.f %z over "dp" : tensor<6xf32> -> tensor<6xf32, #par.place<[6], replicated [dp]>>
  %s = train.accumulate (%i = %x) : (tensor<3x4x4xf32, #par.place<[3, 8 @dp, 4]>>) -> tensor<f32, #par.place<[], partial [dp]>> {
    %y = tx.matmul %i, %f : (tensor<4x4xf32, #par.place<[8 @dp, 4]>>, tensor<4x6xf32, #par.place<[4, 6], replicated [dp]>>) -> tensor<4x6xf32, #par.place<[8 @dp, 6]>>
    %bz = tx.mul %fb, %fz : (tensor<6xf32, #par.place<[6], replicated [dp]>>, tensor<6xf32, #par.place<[6], replicated [dp]>>) -> tensor<6xf32, #par.place<[6], replicated [dp]>>
    %bb = tx.broadcast %bz : tensor<6xf32, #par.place<[6], replicated [dp]>> -> tensor<4x6xf32, #par.place<[8 @dp, 6]>>
    %t = tx.add %y, %bb : (tensor<4x6xf32, #par.place<[8 @dp, 6]>>, tensor<4x6xf32, #par.place<[8 @dp, 6]>>) -> tensor<4x6xf32, #par.place<[8 @dp, 6]>>
    %h = tx.gelu %t : (tensor<4x6xf32, #par.place<[8 @dp, 6]>>) -> tensor<4x6xf32, #par.place<[8 @dp, 6]>>
    %q = tx.mul %h, %t : (tensor<4x6xf32, #par.place<[8 @dp, 6]>>, tensor<4x6xf32, #par.place<[8 @dp, 6]>>) -> tensor<4x6xf32, #par.place<[8 @dp, 6]>>
    %r = tx.reduce_sum %q [0, 1] : tensor<4x6xf32, #par.place<[8 @dp, 6]>> -> tensor<f32, #par.place<[], partial [dp]>>
    train.yield %r : tensor<f32, #par.place<[], partial [dp]>>
  }
  %g = par.g %s over "dp" : tensor<f32, #par.place<[], partial [dp]>> -> tensor<f32>
  train.minimize %g : tensor<f32>
  return %g : tensor<f32>
}

// One parameter used as a factor and, transposed, as another.
// TIED: gradient of w
func.func @tied(%x: tensor<4x4xf32, #par.place<[8 @dp, 4]>>) -> tensor<f32> {
  %w = train.read @w : tensor<4x6xf32>
  %f = par.f %w over "dp" : tensor<4x6xf32> -> tensor<4x6xf32, #par.place<[4, 6], replicated [dp]>>
  %y = tx.matmul %x, %f : (tensor<4x4xf32, #par.place<[8 @dp, 4]>>, tensor<4x6xf32, #par.place<[4, 6], replicated [dp]>>) -> tensor<4x6xf32, #par.place<[8 @dp, 6]>>
  %a = tx.tanh %y : (tensor<4x6xf32, #par.place<[8 @dp, 6]>>) -> tensor<4x6xf32, #par.place<[8 @dp, 6]>>
  %z = tx.matmul_nt %a, %f : (tensor<4x6xf32, #par.place<[8 @dp, 6]>>, tensor<4x6xf32, #par.place<[4, 6], replicated [dp]>>) -> tensor<4x4xf32, #par.place<[8 @dp, 4]>>
  %p = tx.softmax %z : (tensor<4x4xf32, #par.place<[8 @dp, 4]>>) -> tensor<4x4xf32, #par.place<[8 @dp, 4]>>
  %m = tx.mul %p, %x : (tensor<4x4xf32, #par.place<[8 @dp, 4]>>, tensor<4x4xf32, #par.place<[8 @dp, 4]>>) -> tensor<4x4xf32, #par.place<[8 @dp, 4]>>
  %r = tx.reduce_sum %m [0, 1] : tensor<4x4xf32, #par.place<[8 @dp, 4]>> -> tensor<f32, #par.place<[], partial [dp]>>
  %g = par.g %r over "dp" : tensor<f32, #par.place<[], partial [dp]>> -> tensor<f32>
  train.minimize %g : tensor<f32>
  return %g : tensor<f32>
}

// Shards and full tensors: gathers to an invariant and to a replicated value, a narrow and a reduce-scatter, within
// blocks too.
// MOVES: gradient of w
func.func @moves(%x: tensor<4x4xf32, #par.place<[8 @dp, 4]>>) -> tensor<f32> {
  %w = train.read @w : tensor<4x6xf32>
  %f = par.f %w over "dp" : tensor<4x6xf32> -> tensor<4x6xf32, #par.place<[4, 6], replicated [dp]>>
  %y = tx.matmul %x, %f : (tensor<4x4xf32, #par.place<[8 @dp, 4]>>, tensor<4x6xf32, #par.place<[4, 6], replicated [dp]>>) -> tensor<4x6xf32, #par.place<[8 @dp, 6]>>
  %g = par.all_gather %y over "dp" along 0 : tensor<4x6xf32, #par.place<[8 @dp, 6]>> -> tensor<8x6xf32>
  %t = tx.tanh %g : (tensor<8x6xf32>) -> tensor<8x6xf32>
  %n = par.narrow %t over "dp" along 1 in 3 blocks : tensor<8x6xf32> -> tensor<8x3xf32, #par.place<[8, 3 x 2 @dp]>>
  %e = tx.exp %n : (tensor<8x3xf32, #par.place<[8, 3 x 2 @dp]>>) -> tensor<8x3xf32, #par.place<[8, 3 x 2 @dp]>>
  %a = par.all_gather %e over "dp" along 1 in 3 blocks : tensor<8x3xf32, #par.place<[8, 3 x 2 @dp]>> -> tensor<8x6xf32, #par.place<[8, 6], replicated [dp]>>
  %m = tx.matmul_nt %a, %y : (tensor<8x6xf32, #par.place<[8, 6], replicated [dp]>>, tensor<4x6xf32, #par.place<[8 @dp, 6]>>) -> tensor<8x4xf32, #par.place<[8, 8 @dp]>>
  %r = tx.reduce_sum %m [1] : tensor<8x4xf32, #par.place<[8, 8 @dp]>> -> tensor<8xf32, #par.place<[8], partial [dp]>>
  %s = par.reduce_scatter %r over "dp" along 0 : tensor<8xf32, #par.place<[8], partial [dp]>> -> tensor<4xf32, #par.place<[8 @dp]>>
  %q = tx.mul %s, %s : (tensor<4xf32, #par.place<[8 @dp]>>, tensor<4xf32, #par.place<[8 @dp]>>) -> tensor<4xf32, #par.place<[8 @dp]>>
  %l = tx.reduce_sum %q [0] : tensor<4xf32, #par.place<[8 @dp]>> -> tensor<f32, #par.place<[], partial [dp]>>
  %z = par.g %l over "dp" : tensor<f32, #par.place<[], partial [dp]>> -> tensor<f32>
  train.minimize %z : tensor<f32>
  return %z : tensor<f32>
}

// A Transformer's block: norm, queries, keys and values sliced from one matmul, attention, residual.
// BLOCK: gradient of qkv
// BLOCK-NEXT: gradient of scale
// BLOCK-NEXT: gradient of shift
func.func @block(%x: tensor<1x3x4xf32, #par.place<[2 @dp, 3, 4]>>) -> tensor<f32> {
  %qkv = train.read @qkv : tensor<4x12xf32>
  %scale = train.read @scale : tensor<4xf32>
  %shift = train.read @shift : tensor<4xf32>
  %f = par.f %qkv over "dp" : tensor<4x12xf32> -> tensor<4x12xf32, #par.place<[4, 12], replicated [dp]>>
  %fs = par.f %scale over "dp" : tensor<4xf32> -> tensor<4xf32, #par.place<[4], replicated [dp]>>
  %ft = par.f %shift over "dp" : tensor<4xf32> -> tensor<4xf32, #par.place<[4], replicated [dp]>>
  %n, %mean, %rstd = tx.layer_norm %x, %fs, %ft eps 1.0e-5 : (tensor<1x3x4xf32, #par.place<[2 @dp, 3, 4]>>, tensor<4xf32, #par.place<[4], replicated [dp]>>, tensor<4xf32, #par.place<[4], replicated [dp]>>) -> (tensor<1x3x4xf32, #par.place<[2 @dp, 3, 4]>>, tensor<1x3xf32, #par.place<[2 @dp, 3]>>, tensor<1x3xf32, #par.place<[2 @dp, 3]>>)
  %y = tx.matmul %n, %f : (tensor<1x3x4xf32, #par.place<[2 @dp, 3, 4]>>, tensor<4x12xf32, #par.place<[4, 12], replicated [dp]>>) -> tensor<1x3x12xf32, #par.place<[2 @dp, 3, 12]>>
  %q0 = tx.slice %y [0, 0, 0] by [1, 1, 1] : tensor<1x3x12xf32, #par.place<[2 @dp, 3, 12]>> -> tensor<1x3x4xf32, #par.place<[2 @dp, 3, 4]>>
  %k0 = tx.slice %y [0, 0, 4] by [1, 1, 1] : tensor<1x3x12xf32, #par.place<[2 @dp, 3, 12]>> -> tensor<1x3x4xf32, #par.place<[2 @dp, 3, 4]>>
  %v0 = tx.slice %y [0, 0, 8] by [1, 1, 1] : tensor<1x3x12xf32, #par.place<[2 @dp, 3, 12]>> -> tensor<1x3x4xf32, #par.place<[2 @dp, 3, 4]>>
  %q = tx.reshape %q0 : tensor<1x3x4xf32, #par.place<[2 @dp, 3, 4]>> -> tensor<1x3x2x2xf32, #par.place<[2 @dp, 3, 2, 2]>>
  %k = tx.reshape %k0 : tensor<1x3x4xf32, #par.place<[2 @dp, 3, 4]>> -> tensor<1x3x2x2xf32, #par.place<[2 @dp, 3, 2, 2]>>
  %v = tx.reshape %v0 : tensor<1x3x4xf32, #par.place<[2 @dp, 3, 4]>> -> tensor<1x3x2x2xf32, #par.place<[2 @dp, 3, 2, 2]>>
  %o, %lse = tx.attention %q, %k, %v scale 0.7 causal : (tensor<1x3x2x2xf32, #par.place<[2 @dp, 3, 2, 2]>>, tensor<1x3x2x2xf32, #par.place<[2 @dp, 3, 2, 2]>>, tensor<1x3x2x2xf32, #par.place<[2 @dp, 3, 2, 2]>>) -> (tensor<1x3x2x2xf32, #par.place<[2 @dp, 3, 2, 2]>>, tensor<1x2x3xf32, #par.place<[2 @dp, 2, 3]>>)
  %o4 = tx.reshape %o : tensor<1x3x2x2xf32, #par.place<[2 @dp, 3, 2, 2]>> -> tensor<1x3x4xf32, #par.place<[2 @dp, 3, 4]>>
  %e = tx.add %o4, %x : (tensor<1x3x4xf32, #par.place<[2 @dp, 3, 4]>>, tensor<1x3x4xf32, #par.place<[2 @dp, 3, 4]>>) -> tensor<1x3x4xf32, #par.place<[2 @dp, 3, 4]>>
  %s = tx.mul %e, %e : (tensor<1x3x4xf32, #par.place<[2 @dp, 3, 4]>>, tensor<1x3x4xf32, #par.place<[2 @dp, 3, 4]>>) -> tensor<1x3x4xf32, #par.place<[2 @dp, 3, 4]>>
  %r = tx.reduce_sum %s [0, 1, 2] : tensor<1x3x4xf32, #par.place<[2 @dp, 3, 4]>> -> tensor<f32, #par.place<[], partial [dp]>>
  %g = par.g %r over "dp" : tensor<f32, #par.place<[], partial [dp]>> -> tensor<f32>
  train.minimize %g : tensor<f32>
  return %g : tensor<f32>
}
}
