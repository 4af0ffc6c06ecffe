// RUN: partita-opt %s --partition-verify --split-input-file --verify-diagnostics=only-expected

module attributes {par.mesh = #par.mesh<dp = 2>} {
func.func @partial(%x: tensor<f32, #par.place<[], partial [dp]>>) {
  // expected-error@+1 {{minimizes a partial sum over "dp"}}
  train.minimize %x : tensor<f32, #par.place<[], partial [dp]>>
  return
}
}

// -----

module attributes {par.mesh = #par.mesh<tp = 2>} {
func.func @replicated(%x: tensor<f32, #par.place<[], replicated [tp]>>) {
  // expected-error@+1 {{minimizes a value that is replicated over "tp": its gradient would count once for every rank}}
  train.minimize %x : tensor<f32, #par.place<[], replicated [tp]>>
  return
}
}

// -----

module attributes {par.mesh = #par.mesh<dp = 2>} {
// expected-error@+1 {{one rank's shard is 'tensor<4xf32, #par.place<[8 @dp]>>', the type says 'tensor<8xf32, #par.place<[8 @dp]>>'}}
func.func @shard(%x: tensor<8xf32, #par.place<[8 @dp]>>) {
  return
}
}

// -----

module attributes {par.mesh = #par.mesh<dp = 2>} {
// expected-error@+1 {{placement over "tp", an axis that the mesh #par.mesh<dp = 2> lacks}}
func.func @axis(%x: tensor<4xf32, #par.place<[8 @tp]>>) {
  return
}
}

// -----

module attributes {par.mesh = #par.mesh<dp = 2>} {
func.func @returned(%x: tensor<f32, #par.place<[], partial [dp]>>) -> tensor<f32, #par.place<[], partial [dp]>> {
  // expected-error@+1 {{returns a partial sum over "dp"}}
  return %x : tensor<f32, #par.place<[], partial [dp]>>
}
}

// -----

module attributes {par.mesh = #par.mesh<tp = 2>} {
  func.func @unplaced(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error@+1 {{'par.narrow' over "tp" is not placed yet}}
    %n = par.narrow %x over "tp" along 0 : tensor<4xf32> -> tensor<4xf32>
    return %n : tensor<4xf32>
  }
}
