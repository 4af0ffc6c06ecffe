// RUN: partita-opt %s --note-flops --split-input-file | FileCheck %s
// RUN: partita-opt %s --mark-layers --note-flops --split-input-file | FileCheck %s --check-prefix=LAYERS

// CHECK: module attributes {train.work = [#train.work<place = -1, matmuls = 9.600000e+01 : f64, elementwise = 0.000000e+00 : f64, backward = 0.000000e+00 : f64, parameters = 24>]}
train.parameter @w : tensor<4x6xf32>
func.func @forward(%x: tensor<2x4xf32>) -> tensor<2x6xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %0 = train.read @w : tensor<4x6xf32>
  %1 = tx.matmul %x, %0 : (tensor<2x4xf32>, tensor<4x6xf32>) -> tensor<2x6xf32>
  return %1 : tensor<2x6xf32>
}

// -----

// Two layers in a loop of three micro-batches: each 3 * 2 * (2 * 4 * 4), and elementwise what relu, additions and the sum
// read. A parameter counts where it is read first. The data's gradient nobody needs.
// LAYERS: module attributes {train.work = [#train.work<place = -1, matmuls = 9.600000e+01 : f64, elementwise = 0.0
// LAYERS: module attributes {train.work = [
// LAYERS-SAME: #train.work<place = -1, matmuls = 0.000000e+00 : f64, elementwise = 2.400000e+01 : f64, backward = 0.000000e+00 : f64, parameters = 0>,
// LAYERS-SAME: #train.work<place = 0, matmuls = 1.920000e+02 : f64, elementwise = 2.400000e+01 : f64, backward = 1.920000e+02 : f64, parameters = 16>,
// LAYERS-SAME: #train.work<place = 1, matmuls = 1.920000e+02 : f64, elementwise = 2.400000e+01 : f64, backward = 3.840000e+02 : f64, parameters = 16>,
// LAYERS-SAME: #train.work<place = -2, matmuls = 0.000000e+00 : f64, elementwise = 5.100000e+01 : f64, backward = 0.000000e+00 : f64, parameters = 0>]}
train.parameter @a0 : tensor<4x4xf32>
train.parameter @b0 : tensor<4x4xf32>
func.func @train_step(%xs: tensor<3x2x4xf32>) -> tensor<f32> attributes {train.entry_point = #train.entry_point<train_step>} {
  %w0 = train.read @a0 : tensor<4x4xf32>
  %w1 = train.read @b0 : tensor<4x4xf32>
  %share = tx.constant dense<0.5> : tensor<f32> : tensor<f32>
  %loss = train.accumulate (%x = %xs) : (tensor<3x2x4xf32>) -> tensor<f32> {
    %s = tx.relu %x : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %0 = tx.matmul %s, %w0 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %1 = tx.add %s, %0 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %2 = tx.matmul %1, %w1 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %3 = tx.add %1, %2 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %4 = tx.exp %3 : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %5 = tx.reduce_sum %4 [0, 1] : tensor<2x4xf32> -> tensor<f32>
    %6 = tx.mul %5, %share : (tensor<f32>, tensor<f32>) -> tensor<f32>
    train.yield %6 : tensor<f32>
  }
  train.minimize %loss : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Attention: 2 * (1 batch * 3 queries * 4 heads * 5 keys) * (8 + 2), whatever mask it has.
// CHECK: matmuls = 1.200000e+03 : f64
func.func @forward(%q: tensor<1x3x4x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x2x2xf32>) -> tensor<1x3x4x2xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %out, %lse = tx.attention %q, %k, %v scale 1.0 causal : (tensor<1x3x4x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x2x2xf32>) -> (tensor<1x3x4x2xf32>, tensor<1x4x3xf32>)
  return %out : tensor<1x3x4x2xf32>
}

// -----

// A module that computes nothing has nothing noted.
// CHECK-NOT: train.work
train.parameter @alone : tensor<4xf32>

// -----

// Of two layers the first is frozen: nothing in front of the second one needs a gradient, nor does attention of what is frozen.
// LAYERS: module attributes {train.work = [#train.work<place = {{.*}}
// CHECK: train.work = [#train.work<{{.*}}matmuls = 1.760000e+02 : f64, {{.*}}backward = 4.800000e+01 : f64, {{.*}}>]
train.parameter @first : tensor<4x4xf32> frozen
train.parameter @second : tensor<4x3xf32>
func.func @train_step(%x: tensor<2x4xf32>, %q: tensor<1x2x1x4xf32>) -> tensor<f32> attributes {train.entry_point = #train.entry_point<train_step>} {
  %0 = train.read @first : tensor<4x4xf32>
  %1 = train.read @second : tensor<4x3xf32>
  %2 = tx.matmul %x, %0 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %out, %lse = tx.attention %q, %q, %q scale 1.0 causal : (tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>) -> (tensor<1x2x1x4xf32>, tensor<1x1x2xf32>)
  %3 = tx.matmul %2, %1 : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %4 = tx.reduce_sum %3 [0, 1] : tensor<2x3xf32> -> tensor<f32>
  train.minimize %4 : tensor<f32>
  return %4 : tensor<f32>
}

// -----

// Attention is two matmuls, of which each says over which letter it does not go: 2 * 2 heads * 3 queries * 5 keys * (4 + 6).
// CHECK: module attributes {train.work = [#train.work<place = -1, matmuls = 6.000000e+02 : f64, elementwise = 0.000000e+00 : f64
func.func @forward(%q: tensor<1x3x2x4xf32>, %k: tensor<1x5x1x4xf32>, %v: tensor<1x5x1x6xf32>) -> tensor<1x3x2x6xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %out, %lse = tx.attention %q, %k, %v scale 5.000000e-01 : (tensor<1x3x2x4xf32>, tensor<1x5x1x4xf32>, tensor<1x5x1x6xf32>) -> (tensor<1x3x2x6xf32>, tensor<1x2x3xf32>)
  return %out : tensor<1x3x2x6xf32>
}

// -----

// Attention of 8 positions, one head of 4: two matmuls of 2 * 8 * 8 * 4, of which a quarter of the blocks is computed.
// CHECK: module attributes {train.work = [#train.work<place = -1, matmuls = 2.560000e+02 : f64,
// LAYERS: module attributes {train.work = [#train.work<place = -1, matmuls = 2.560000e+02 : f64,
func.func @forward(%x: tensor<1x8x1x4xf32>) -> tensor<1x8x1x4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %o, %l = tx.attention %x, %x, %x scale 0.5 causal blocks <2, [band 0 to 0]> : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return %o : tensor<1x8x1x4xf32>
}
