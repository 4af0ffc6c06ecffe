// RUN: partita-opt %s --split-input-file --partition-seed-sequence --verify-diagnostics

module attributes {par.mesh = #par.mesh<tp = 4>} {
  train.parameter @down : tensor<16x4xf32> {par.split = #par.place<[16 @tp, 4]>}
  func.func @forward(%x: tensor<2x6x16xf32> {train.batch = 0}) -> tensor<2x6x4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
    %down = train.read @down : tensor<16x4xf32>
    // expected-error@+1 {{sequence parallelism splits a dimension of size 6, which does not divide over tp = 4; take a multiple of 4 (4, 8, ...)}}
    %h = tx.matmul %x, %down : (tensor<2x6x16xf32>, tensor<16x4xf32>) -> tensor<2x6x4xf32>
    return %h : tensor<2x6x4xf32>
  }
}

// -----

// expected-error@+1 {{sequence parallelism splits over mesh axis 'tp', of which there is one rank; a mesh with tp=2 or more has what it splits}}
module attributes {par.mesh = #par.mesh<dp = 2>} {
  func.func @forward(%x: tensor<2x6x16xf32> {train.batch = 0}) -> tensor<2x6x16xf32> attributes {train.entry_point = #train.entry_point<forward>} {
    return %x : tensor<2x6x16xf32>
  }
}

// -----

// The batch alone is left.
// expected-error@+1 {{sequence parallelism finds nothing to split: no matmul leaves a sum over mesh axis 'tp' open whose rows are more than the batch}}
module attributes {par.mesh = #par.mesh<tp = 2>} {
  train.parameter @down : tensor<16x4xf32> {par.split = #par.place<[16 @tp, 4]>}
  func.func @forward(%x: tensor<2x16xf32> {train.batch = 0}) -> tensor<2x4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
    %down = train.read @down : tensor<16x4xf32>
    %h = tx.matmul %x, %down : (tensor<2x16xf32>, tensor<16x4xf32>) -> tensor<2x4xf32>
    return %h : tensor<2x4xf32>
  }
}
