// RUN: partita-opt %s --partition-propagate --partition-materialize --split-input-file --verify-diagnostics=only-expected

module attributes {par.mesh = #par.mesh<dp = 2>} {
// The softmax runs over the dimension that is split.
// expected-note@+1 {{operand 0 is sharded(1) over dp: it is argument 0 of @never}}
func.func @never(%x: tensor<4x8xf32> {par.split = #par.place<[4, 8 @dp]>}) -> tensor<4x8xf32> {
  // expected-error@+1 {{cannot be split: letter n cannot be split, it is split over dp (rule '* n^ -> * n^'); it would need what other ranks of dp have: write it so that it works within a sample, or leave dp at 1}}
  %y = tx.softmax %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
}

// -----

module attributes {par.mesh = #par.mesh<dp = 2>} {
func.func @uneven(%x: tensor<3x8xf32> {par.split = #par.place<[3 @dp, 8]>}) -> tensor<3x8xf32> { // expected-error {{dimension 0 of size 3 does not divide over mesh axis dp of size 2}}
  return %x : tensor<3x8xf32>
}
}

// -----

module attributes {par.mesh = #par.mesh<dp = 2>} {
// A position cannot know which rank it stands on.
func.func @offset(%x: tensor<8xf32> {par.split = #par.place<[8 @dp]>}) -> tensor<8xf32> {
  %i = tx.iota 0.0, 1.0 : tensor<8xf32> // expected-error {{letter n cannot be split, it is split over dp}}
  %y = tx.add %x, %i : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
}

// -----

module attributes {par.mesh = #par.mesh<dp = 2>} {
// A rank would have three rows, then three rows elsewhere: they have no one first index.
func.func @rows_in_blocks(%x: tensor<4x6x8xf32> {par.split = #par.place<[4, 6 @dp, 8]>}, %ids: tensor<5xi64>) -> tensor<5x8xf32> {
  %rows = tx.reshape %x : tensor<4x6x8xf32> -> tensor<24x8xf32>
  // expected-error@+1 {{cannot be split: letter v cannot be split in blocks, it is split over dp}}
  %y = tx.embedding %rows, %ids : (tensor<24x8xf32>, tensor<5xi64>) -> tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}
}
