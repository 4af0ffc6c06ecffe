// RUN: partita-opt %s --pass-pipeline='builtin.module(sparsify-attention{layout=mode=bslongformer,block=4,global_block_indices=5})' --split-input-file --verify-diagnostics
// RUN: not partita-opt %s --pass-pipeline='builtin.module(sparsify-attention{layout=mode=fixt})' 2>&1 | FileCheck %s --check-prefix=MODE
// MODE: error: sparse attention: there is no mode 'fixt'; did you mean 'fixed'?

func.func @indivisible(%x: tensor<1x102x2x4xf32>) {
  // expected-error@+1 {{sparse attention: block=4 does not divide the sequence of 102; block=3, block=6 do, or choose another --dim}}
  %o, %l = tx.attention %x, %x, %x scale 0.5 : (tensor<1x102x2x4xf32>, tensor<1x102x2x4xf32>, tensor<1x102x2x4xf32>) -> (tensor<1x102x2x4xf32>, tensor<1x2x102xf32>)
  return
}

// -----

func.func @prime(%x: tensor<1x7x2x4xf32>) {
  // expected-error@+1 {{sparse attention: block=4 does not divide the sequence of 7; no block but 1 and 7 does, or choose another --dim}}
  %o, %l = tx.attention %x, %x, %x scale 0.5 : (tensor<1x7x2x4xf32>, tensor<1x7x2x4xf32>, tensor<1x7x2x4xf32>) -> (tensor<1x7x2x4xf32>, tensor<1x2x7xf32>)
  return
}

// -----

func.func @out_of_range(%x: tensor<1x16x2x4xf32>) {
  // expected-error@+1 {{sparse attention: global_block_indices has 5, but the sequence has blocks 0 to 3 of 4}}
  %o, %l = tx.attention %x, %x, %x scale 0.5 : (tensor<1x16x2x4xf32>, tensor<1x16x2x4xf32>, tensor<1x16x2x4xf32>) -> (tensor<1x16x2x4xf32>, tensor<1x2x16xf32>)
  return
}

// -----

// expected-error@+1 {{sparse attention: the model has no attention; leave --sparse-attention out}}
module {
  func.func @no_attention(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
    return %x : tensor<4x8xf32>
  }
}

// -----

func.func @cross_attention(%x: tensor<1x24x2x4xf32>, %e: tensor<1x24x2x4xf32>) {
  // expected-error@+1 {{sparse attention: the model has no self-attention, only attention to other keys; leave --sparse-attention out}}
  %o, %l = tx.attention %x, %e, %e scale 0.5 : (tensor<1x24x2x4xf32>, tensor<1x24x2x4xf32>, tensor<1x24x2x4xf32>) -> (tensor<1x24x2x4xf32>, tensor<1x2x24xf32>)
  return
}

// -----

func.func @not_raised(%q: tensor<2x24x4xf32>, %k: tensor<2x4x24xf32>, %v: tensor<2x24x4xf32>) -> tensor<2x24x4xf32> {
  %s = tx.batch_matmul %q, %k : (tensor<2x24x4xf32>, tensor<2x4x24xf32>) -> tensor<2x24x24xf32>
  // expected-error@+1 {{sparse attention: this softmax of scores was not raised to tx.attention and would stay dense; 'partita import --report' says why}}
  %p = tx.softmax %s : (tensor<2x24x24xf32>) -> tensor<2x24x24xf32>
  %o = tx.batch_matmul %p, %v : (tensor<2x24x24xf32>, tensor<2x24x4xf32>) -> tensor<2x24x4xf32>
  return %o : tensor<2x24x4xf32>
}
