// RUN: partita-opt %s --split-input-file --verify-diagnostics=only-expected

// The mistakes that training systems make silently do not verify.

// A forgotten g: a nonlinear op of a partial sum.
func.func @forgotten_g(%x: tensor<4xf32, #par.place<[4], partial [tp]>>) {
  // expected-error@+1 {{operand 0 is a partial sum over tp, and the op is not linear in it}}
  %y = tx.exp %x : (tensor<4xf32, #par.place<[4], partial [tp]>>) -> tensor<4xf32, #par.place<[4], partial [tp]>>
  return
}

// -----

// A forgotten f: the weight's gradient would be one rank's alone.
func.func @forgotten_f(%x: tensor<4x4xf32, #par.place<[8 @dp, 4]>>, %w: tensor<4x6xf32>) {
  // expected-error@+1 {{letter *0 is split over dp: operand 1 must be replicated, it is invariant}}
  %y = tx.matmul %x, %w : (tensor<4x4xf32, #par.place<[8 @dp, 4]>>, tensor<4x6xf32>) -> tensor<4x6xf32, #par.place<[8 @dp, 6]>>
  return
}

// -----

// The wrong shard: a row-parallel weight applied to a full input.
func.func @wrong_shard(%x: tensor<8x4xf32, #par.place<[8, 4], replicated [tp]>>, %w: tensor<2x6xf32, #par.place<[4 @tp, 6]>>) {
  // expected-error@+1 {{letter k is split over tp: operand 0 must be sharded(1), it is replicated}}
  %y = "tx.matmul"(%x, %w) : (tensor<8x4xf32, #par.place<[8, 4], replicated [tp]>>, tensor<2x6xf32, #par.place<[4 @tp, 6]>>) -> tensor<8x6xf32, #par.place<[8, 6], partial [tp]>>
  return
}

// -----

// An axis of another mesh.
module attributes {par.mesh = #par.mesh<tp = 2>} {
  func.func @other_mesh(%x: tensor<4xf32>) {
    // expected-error@+1 {{'par.g' op is over "dp", which the mesh #par.mesh<tp = 2> does not have}}
    %y = par.g %x over "dp" : tensor<4xf32> -> tensor<4xf32>
    return
  }
}

// -----

module attributes {par.mesh = #par.mesh<tp = 2>} {
  func.func @other_move(%x: tensor<4xf32>) {
    // expected-error@+1 {{'par.narrow' op is over "dp", which the mesh #par.mesh<tp = 2> does not have}}
    %y = par.narrow %x over "dp" along 0 : tensor<4xf32> -> tensor<2xf32, #par.place<[4 @dp]>>
    return
  }
}

// -----

// A bias added once per rank.
func.func @bias_twice(%x: tensor<4xf32, #par.place<[4], partial [tp]>>, %b: tensor<4xf32>) {
  // expected-error@+1 {{operand 0 is a partial sum over tp but operand 1 is invariant}}
  %y = tx.add %x, %b : (tensor<4xf32, #par.place<[4], partial [tp]>>, tensor<4xf32>) -> tensor<4xf32, #par.place<[4], partial [tp]>>
  return
}

// -----

// A product of two partial sums is no partial sum of the product.
func.func @square(%x: tensor<4xf32, #par.place<[4], partial [tp]>>) {
  // expected-error@+1 {{operand 1 is a partial sum over tp, and the op is not linear in it}}
  %y = tx.mul %x, %x : (tensor<4xf32, #par.place<[4], partial [tp]>>, tensor<4xf32, #par.place<[4], partial [tp]>>) -> tensor<4xf32, #par.place<[4], partial [tp]>>
  return
}

// -----

// Reduced twice.
func.func @twice(%x: tensor<4xf32, #par.place<[4], partial [tp]>>) {
  %y = par.g %x over "tp" : tensor<4xf32, #par.place<[4], partial [tp]>> -> tensor<4xf32>
  // expected-error@+1 {{over "tp" expects a value that is partial, it is invariant}}
  %z = par.g %y over "tp" : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

// A dropped partial sum: the result's type forgets it.
func.func @dropped(%x: tensor<4x4xf32, #par.place<[8 @dp, 4]>>) {
  // expected-error@+1 {{result 0 is 'tensor<4xf32, #par.place<[4], partial [dp]>>', not 'tensor<4xf32>'}}
  %y = tx.reduce_sum %x [0] : tensor<4x4xf32, #par.place<[8 @dp, 4]>> -> tensor<4xf32>
  return
}

// -----

// Full and split data mixed.
func.func @mixed(%x: tensor<4xf32, #par.place<[8 @dp]>>, %y: tensor<4xf32>) {
  // expected-error@+1 {{}}
  %z = tx.add %x, %y : (tensor<4xf32, #par.place<[8 @dp]>>, tensor<4xf32>) -> tensor<4xf32, #par.place<[8 @dp]>>
  return
}

// -----

// expected-error@+1 {{mesh axis "dp" is used twice in one placement}}
func.func @axis_twice(%x: tensor<4x2xf32, #par.place<[8 @dp, 4 @dp]>>)

// -----

// A gather of a value that every rank has in full.
func.func @gather_full(%x: tensor<4xf32>) {
  // expected-error@+1 {{over "tp" expects a shard that is split along dimension 0 in 1 blocks, it is 'tensor<4xf32>'}}
  %y = par.all_gather %x over "tp" along 0 : tensor<4xf32> -> tensor<4xf32, #par.place<[4], replicated [tp]>>
  return
}

// -----

// Along another dimension than it is split.
module attributes {par.mesh = #par.mesh<tp = 2>} {
func.func @other_dimension(%x: tensor<2x4xf32, #par.place<[4 @tp, 4]>>) {
  // expected-error@+1 {{over "tp" expects a shard that is split along dimension 1 in 1 blocks, it is 'tensor<2x4xf32, #par.place<[4 @tp, 4]>>'}}
  %y = par.all_gather %x over "tp" along 1 : tensor<2x4xf32, #par.place<[4 @tp, 4]>> -> tensor<4x4xf32>
  return
}
}

// -----

// A reduce-scatter of what is no sum: every rank's shard would be that many times too large.
module attributes {par.mesh = #par.mesh<tp = 2>} {
func.func @no_sum(%x: tensor<4xf32>) {
  // expected-error@+1 {{over "tp" expects a full value that is partial, it is invariant: 'tensor<4xf32>'}}
  %y = par.reduce_scatter %x over "tp" along 0 : tensor<4xf32> -> tensor<2xf32, #par.place<[4 @tp]>>
  return
}
}

// -----

// A shard of a partial sum, of which a rank has only its own share.
module attributes {par.mesh = #par.mesh<tp = 2>} {
func.func @shard_of_a_share(%x: tensor<4xf32, #par.place<[4], partial [tp]>>) {
  // expected-error@+1 {{over "tp" expects a full value that is invariant, it is partial}}
  %y = par.narrow %x over "tp" along 0 : tensor<4xf32, #par.place<[4], partial [tp]>> -> tensor<2xf32, #par.place<[4 @tp]>>
  return
}
}

// -----

// Shards that another axis splits again lie apart.
module attributes {par.mesh = #par.mesh<dp = 2, tp = 2>} {
func.func @apart(%x: tensor<2xf32, #par.place<[8 @dp @tp]>>) {
  // expected-error@+1 {{over "dp" cannot move shards that "tp" splits again}}
  %y = par.all_gather %x over "dp" along 0 : tensor<2xf32, #par.place<[8 @dp @tp]>> -> tensor<4xf32, #par.place<[8 @tp]>>
  return
}
}

// -----

// A full tensor of another size than its shards make.
module attributes {par.mesh = #par.mesh<tp = 2>} {
func.func @size(%x: tensor<2xf32, #par.place<[4 @tp]>>) {
  // expected-error@+1 {{is not a shard of}}
  %y = par.all_gather %x over "tp" along 0 : tensor<2xf32, #par.place<[4 @tp]>> -> tensor<6xf32>
  return
}
}

// -----

// Unequal blocks of another size together, and a second axis beside them.
// expected-error@+1 {{a dimension of 8 that is split in unequal blocks has an axis of its own and blocks of that size together}}
func.func @unequal(%x: tensor<4xf32, #par.place<[4 + 2 + 2 @dp @tp]>>) {
  return
}

// -----

// A role is one of those that passes know.
module attributes {par.mesh = #par.mesh<tp = 2>} {
func.func @role(%x: tensor<4xf32>) {
  // expected-error@+2 {{expected ::partita::par::Role to be one of: sum, max, share, parameter, full, shard, block, moved, update, kept, saved, held, norm, report}}
  // expected-error@+1 {{failed to parse Par_CauseAttr parameter 'role'}}
  %y = par.f %x over "tp" {par.causes = [#par.cause<gradient "k" in "" of "" "" layer 0 of 1>]} : tensor<4xf32> -> tensor<4xf32, #par.place<[4], replicated [tp]>>
  return
}
}
