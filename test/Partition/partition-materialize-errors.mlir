// RUN: partita-opt %s --partition-propagate --partition-materialize --split-input-file --verify-diagnostics=only-expected

module attributes {par.mesh = #par.mesh<dp = 2>} {
// The softmax runs over the dimension that is split.
// expected-note@+1 {{operand 0 is sharded(1) over dp: it is argument 0 of @never}}
func.func @never(%x: tensor<4x8xf32> {par.split = #par.place<[4, 8 @dp]>}) -> tensor<4x8xf32> {
  // expected-error@+1 {{cannot be split: letter n cannot be split, it is split over dp (rule '* n^ -> * n^'); it would need what other ranks of dp have: leave dp at 1}}
  %y = tx.softmax %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
}

// -----

module attributes {par.mesh = #par.mesh<dp = 2>} {
// Scores of each sample against all others, as in a contrastive loss.
// expected-note@+1 2 {{is sharded(0) over dp: it is argument}}
func.func @contrastive(%x: tensor<4x8xf32> {par.split = #par.place<[4 @dp, 8]>}) -> tensor<4x4xf32> {
  %t = tx.transpose %x [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32> // expected-note {{operand 1 is sharded(1) over dp}}
  // expected-error@+1 {{cannot be split: it needs the samples of all ranks of dp, and each rank has only its own; dp splits letter n of operand 1 but letter *0 elsewhere (rule '~* k+, ~k+ n -> * n'); write it so that it works within a sample, or leave dp at 1}}
  %s = tx.matmul %x, %t : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  return %s : tensor<4x4xf32>
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

// -----

module attributes {par.mesh = #par.mesh<dp = 2>} {
// A number that is added is in the padding too.
train.parameter @table : tensor<4x7xf32> {par.split = #par.place<[4, 7 @dp]>}
func.func @not_zero(%x: tensor<2x4xf32>, %n: tensor<f32>) -> tensor<2x7xf32> {
  %w = train.read @table : tensor<4x7xf32>
  %y = tx.matmul %x, %w : (tensor<2x4xf32>, tensor<4x7xf32>) -> tensor<2x7xf32>
  %b = tx.broadcast %n : tensor<f32> -> tensor<2x7xf32>
  // expected-error@+1 {{letter *1 of size 7 does not divide over mesh axis dp of size 2}}
  %s = tx.add %y, %b : (tensor<2x7xf32>, tensor<2x7xf32>) -> tensor<2x7xf32>
  return %s : tensor<2x7xf32>
}
}

// -----

module attributes {par.mesh = #par.mesh<dp = 2>} {
// The root is zero at zero, and its slope is not bounded there.
train.parameter @table : tensor<4x7xf32> {par.split = #par.place<[4, 7 @dp]>}
func.func @steep(%x: tensor<2x4xf32>) -> tensor<2x7xf32> {
  %w = train.read @table : tensor<4x7xf32>
  %y = tx.matmul %x, %w : (tensor<2x4xf32>, tensor<4x7xf32>) -> tensor<2x7xf32>
  // expected-error@+1 {{letter *1 of size 7 does not divide over mesh axis dp of size 2}}
  %s = tx.sqrt %y : (tensor<2x7xf32>) -> tensor<2x7xf32>
  return %s : tensor<2x7xf32>
}
}

// -----

module attributes {par.mesh = #par.mesh<dp = 2>} {
// No rank takes a shorter shard of values that differ.
train.parameter @table : tensor<3xf32> {par.split = #par.place<[3 @dp]>}
func.func @constant() -> tensor<3xf32> {
  %w = train.read @table : tensor<3xf32>
  // expected-error@+1 {{letter a of size 3 does not divide over mesh axis dp of size 2}}
  %c = tx.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32> : tensor<3xf32>
  %s = tx.mul %w, %c : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %s : tensor<3xf32>
}
}
