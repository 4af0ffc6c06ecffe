// RUN: partita-opt %s --split-input-file --verify-diagnostics --partition-seed-context=how=ring

module attributes {par.mesh = #par.mesh<cp = 2, ulysses = 4>} {
  train.parameter @wte : tensor<16x8xf32>
  func.func @heads(%ids: tensor<2x8xi64> {train.batch = 0}) -> tensor<2x8x2x4xf32> {
    %wte = train.read @wte : tensor<16x8xf32>
    %x = tx.embedding %wte, %ids : (tensor<16x8xf32>, tensor<2x8xi64>) -> tensor<2x8x8xf32>
    %q = tx.reshape %x : tensor<2x8x8xf32> -> tensor<2x8x2x4xf32>
    // expected-error@+1 {{an all-to-all over mesh axis 'ulysses' deals out 2 heads to 4 ranks, which do not divide them; take ulysses = 2, or the ring of cp in its place}}
    %out, %lse = tx.attention %q, %q, %q scale 0.5 causal
      : (tensor<2x8x2x4xf32>, tensor<2x8x2x4xf32>, tensor<2x8x2x4xf32>) -> (tensor<2x8x2x4xf32>, tensor<2x2x8xf32>)
    return %out : tensor<2x8x2x4xf32>
  }
}

// -----

module attributes {par.mesh = #par.mesh<cp = 2, ulysses = 2>} {
  train.parameter @wte : tensor<16x8xf32>
  func.func @length(%ids: tensor<2x6xi64> {train.batch = 0}) -> tensor<2x6x2x4xf32> {
    %wte = train.read @wte : tensor<16x8xf32>
    // expected-error@+1 {{context parallelism splits a dimension of size 6, which does not divide over cp = 2 times ulysses = 2; take a multiple of 4 (4, 8, ...)}}
    %x = tx.embedding %wte, %ids : (tensor<16x8xf32>, tensor<2x6xi64>) -> tensor<2x6x8xf32>
    %q = tx.reshape %x : tensor<2x6x8xf32> -> tensor<2x6x2x4xf32>
    %out, %lse = tx.attention %q, %q, %q scale 0.5 causal
      : (tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>) -> (tensor<2x6x2x4xf32>, tensor<2x2x6xf32>)
    return %out : tensor<2x6x2x4xf32>
  }
}

// -----

// The two lengths that a ring deals out, of which an exchange alone would know nothing.
module attributes {par.mesh = #par.mesh<cp = 2, ulysses = 2>} {
  func.func @lengths(%q: tensor<2x8x2x4xf32> {train.batch = 0}, %k: tensor<2x12x2x4xf32> {train.batch = 0}) -> tensor<2x8x2x4xf32> {
    // expected-error@+1 {{8 queries and 12 keys of one attention alike, for which one number has to divide the other; take lengths of which one divides the other, or all of these ranks as ulysses}}
    %out, %lse = tx.attention %q, %k, %k scale 0.5
      : (tensor<2x8x2x4xf32>, tensor<2x12x2x4xf32>, tensor<2x12x2x4xf32>) -> (tensor<2x8x2x4xf32>, tensor<2x2x8xf32>)
    return %out : tensor<2x8x2x4xf32>
  }
}

// -----

module attributes {par.mesh = #par.mesh<cp = 2, ulysses = 2>} {
  func.func @one(%q: tensor<2x8x1x4xf32> {train.batch = 0}) -> tensor<2x8x1x4xf32> {
    // expected-error@+1 {{an all-to-all over mesh axis 'ulysses' deals out heads, of which there is one; take the ring of cp in its place}}
    %out, %lse = tx.attention %q, %q, %q scale 0.5
      : (tensor<2x8x1x4xf32>, tensor<2x8x1x4xf32>, tensor<2x8x1x4xf32>) -> (tensor<2x8x1x4xf32>, tensor<2x1x8xf32>)
    return %out : tensor<2x8x1x4xf32>
  }
}

// -----

// expected-error@+1 {{--context-parallel ring passes keys on over mesh axis 'cp', of which there is one rank; over 'ulysses' ranks exchange heads: write cp=2 in place of ulysses=2, or leave --context-parallel out}}
module attributes {par.mesh = #par.mesh<ulysses = 2>} {
}

// -----

// The axes in the order in which heads are exchanged over the longer way.
// expected-warning@+1 {{--mesh has ulysses=2 outside cp=4: a ring's neighbours are the nearest ranks, and heads are exchanged over the longer way; if nodes are slower to reach than their own devices, write cp=4,ulysses=2}}
module attributes {par.mesh = #par.mesh<ulysses = 2, cp = 4>} {
  train.parameter @wte : tensor<16x8xf32>
  func.func @order(%ids: tensor<2x16xi64> {train.batch = 0}) -> tensor<2x16x2x4xf32> {
    %wte = train.read @wte : tensor<16x8xf32>
    %x = tx.embedding %wte, %ids : (tensor<16x8xf32>, tensor<2x16xi64>) -> tensor<2x16x8xf32>
    %q = tx.reshape %x : tensor<2x16x8xf32> -> tensor<2x16x2x4xf32>
    %out, %lse = tx.attention %q, %q, %q scale 0.5 causal
      : (tensor<2x16x2x4xf32>, tensor<2x16x2x4xf32>, tensor<2x16x2x4xf32>) -> (tensor<2x16x2x4xf32>, tensor<2x2x16xf32>)
    return %out : tensor<2x16x2x4xf32>
  }
}
