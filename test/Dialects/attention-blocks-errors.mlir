// RUN: partita-opt %s --split-input-file --verify-diagnostics

func.func @keys(%x: tensor<1x8x2x4xf32>, %y: tensor<1x6x2x4xf32>) {
  // expected-error@+1 {{has blocks of self-attention for 8 queries and 6 keys}}
  %o, %l = tx.attention %x, %y, %y scale 0.5 blocks <2, [band 0 to 0]> : (tensor<1x8x2x4xf32>, tensor<1x6x2x4xf32>, tensor<1x6x2x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return
}

// -----

func.func @f(%x: tensor<1x8x2x4xf32>) {
  // expected-error@+1 {{has blocks of 3, which does not divide a sequence of 8}}
  %o, %l = tx.attention %x, %x, %x scale 0.5 blocks <3, [band 0 to 0]> : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return
}

// -----

func.func @f(%x: tensor<1x8x2x4xf32>) {
  // expected-error@+1 {{has patterns of 3 heads, and 2 heads}}
  %o, %l = tx.attention %x, %x, %x scale 0.5 blocks <2, [band 0 to 0], [band -1 to 0], heads [0, 1, 0]> : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return
}

// -----

func.func @f(%x: tensor<1x8x2x4xf32>) {
  // expected-error@+1 {{has a pattern that ends behind the last of 4 blocks}}
  %o, %l = tx.attention %x, %x, %x scale 0.5 blocks <2, [squares 0 to 5 by 2]> : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return
}

// -----

func.func @f(%x: tensor<1x8x2x4xf32>) {
  // expected-error@+1 {{has a pattern that ends behind the last of 4 blocks}}
  %o, %l = tx.attention %x, %x, %x scale 0.5 blocks <2, [band 0 to 0, block 0 4]> : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return
}

// -----

func.func @f(%x: tensor<1x8x2x4xf32>) {
  // expected-error@+1 {{computes no block that queries 6 to 7 (row 3 of blocks) see}}
  %o, %l = tx.attention %x, %x, %x scale 0.5 blocks <2, [squares 0 to 3 by 1]> : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return
}

// -----

func.func @f(%x: tensor<1x8x2x4xf32>) {
  // expected-error@+1 {{computes no block that queries 0 to 1 (row 0 of blocks) see in head 1}}
  %o, %l = tx.attention %x, %x, %x scale 0.5 blocks <2, [band 0 to 0], [band -1 to -1], heads [0, 1]> : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return
}

// -----

func.func @f(%x: tensor<1x8x2x4xf32>) {
  // expected-error@+1 {{computes no block that queries 0 to 1 (row 0 of blocks) see}}
  %o, %l = tx.attention %x, %x, %x scale 0.5 causal blocks <2, [columns 1 to 4 by 1 width 1]> : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return
}

// -----

func.func @f(%x: tensor<1x8x2x4xf32>) {
  // expected-error@+1 {{computes no block that queries 4 to 5 (row 2 of blocks) see}}
  %o, %l = tx.attention %x, %x, %x scale 0.5 causal window 4 blocks <2, [columns 0 to 1 by 1 width 1]> : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return
}

// -----

// expected-error@+1 {{band from 1 to 0 has no blocks}}
func.func private @f() attributes {blocks = #tx.blocks<2, [band 1 to 0]>}

// -----

// expected-error@+1 {{squares from 2 to 2 has no blocks}}
func.func private @f() attributes {blocks = #tx.blocks<2, [squares 2 to 2 by 1]>}

// -----

// expected-error@+1 {{columns from -1 to 2 has no blocks}}
func.func private @f() attributes {blocks = #tx.blocks<2, [columns -1 to 2 by 1 width 1]>}

// -----

// expected-error@+1 {{rows has width 3 of a period of 2, expected 1 to the period}}
func.func private @f() attributes {blocks = #tx.blocks<2, [rows 0 to 4 by 2 width 3]>}

// -----

// expected-error@+1 {{block 1 0 is not after the one before, by row and column}}
func.func private @f() attributes {blocks = #tx.blocks<2, [block 1 2, block 1 0]>}

// -----

// expected-error@+1 {{band has a number 2000000000, expected fewer than 1073741824 blocks}}
func.func private @f() attributes {blocks = #tx.blocks<2, [band 0 to 2000000000]>}

// -----

// expected-error@+1 {{expected band, squares, columns, rows or block, not 'triangle'}}
func.func private @f() attributes {blocks = #tx.blocks<2, [triangle 0 to 1]>}

// -----

// expected-error@+1 {{a block has 0 positions, expected at least 1}}
func.func private @f() attributes {blocks = #tx.blocks<0, [band 0 to 0]>}

// -----

// expected-error@+1 {{expected a pattern}}
func.func private @f() attributes {blocks = #tx.blocks<2>}

// -----

// expected-error@+1 {{2 patterns for a list of 0 heads; several patterns need one, a single pattern none}}
func.func private @f() attributes {blocks = #tx.blocks<2, [band 0 to 0], [band -1 to 0]>}

// -----

// expected-error@+1 {{1 patterns for a list of 1 heads; several patterns need one, a single pattern none}}
func.func private @f() attributes {blocks = #tx.blocks<2, [band 0 to 0], heads [0]>}

// -----

// expected-error@+1 {{head with pattern 2 of 2}}
func.func private @f() attributes {blocks = #tx.blocks<2, [band 0 to 0], [band -1 to 0], heads [0, 2]>}

// -----

func.func @first_head(%x: tensor<1x8x2x4xf32>, %h: tensor<1xi64>) {
  // expected-error@+1 {{has a first head, but no blocks that differ between heads}}
  %o, %l = tx.attention %x, %x, %x scale 0.5 blocks <2, [band 0 to 0]> head %h : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1xi64>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return
}

// -----

module attributes {par.mesh = #par.mesh<tp = 2>} {
func.func @shard(%x: tensor<1x8x2x4xf32, #par.place<[1, 8, 4 @tp, 4]>>) {
  // expected-error@+1 {{needs the first head of a shard, as its heads have different blocks}}
  %o, %l = tx.attention %x, %x, %x scale 0.5 blocks <2, [band 0 to 0], [band -1 to 0], heads [0, 1, 0, 1]> : (tensor<1x8x2x4xf32, #par.place<[1, 8, 4 @tp, 4]>>, tensor<1x8x2x4xf32, #par.place<[1, 8, 4 @tp, 4]>>, tensor<1x8x2x4xf32, #par.place<[1, 8, 4 @tp, 4]>>) -> (tensor<1x8x2x4xf32, #par.place<[1, 8, 4 @tp, 4]>>, tensor<1x2x8xf32, #par.place<[1, 4 @tp, 8]>>)
  return
}
}

// -----

func.func @runs(%x: tensor<1x8x2x4xf32>, %n: tensor<2xi64>) {
  // expected-error@+1 {{has blocks of 8, which do not divide 8 positions in 2 runs}}
  %o, %l = tx.attention_step %x, %x, %x at %n, %n scale 0.5 blocks <8, [band 0 to 0]> behind 0 ring "cp" : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<2xi64>, tensor<2xi64>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return
}

// -----

module attributes {par.mesh = #par.mesh<cp = 2>} {
func.func @behind(%x: tensor<1x8x2x4xf32>, %n: tensor<1xi64>) {
  // expected-error@+1 {{has keys of the rank 1 places behind, in a ring of 1}}
  %o, %l = tx.attention_step %x, %x, %x at %n, %n scale 0.5 blocks <8, [band 0 to 0]> behind 1 ring "cp" : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1xi64>, tensor<1xi64>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return
}
}
