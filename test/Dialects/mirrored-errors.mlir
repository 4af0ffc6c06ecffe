// RUN: partita-opt %s --split-input-file --verify-diagnostics=only-expected

// Three blocks: the middle one alone would be dealt backwards.
// expected-error@+1 {{a dimension in 3 blocks cannot be mirrored, which deals every second block backwards}}
func.func @three(%x: tensor<6xf32, #par.place<[3 x 4 @cp mirrored]>>)

// -----

// expected-error@+1 {{a dimension in 1 blocks cannot be mirrored, which deals every second block backwards}}
func.func @one(%x: tensor<4xf32, #par.place<[8 @cp mirrored]>>)

// -----

// The same elements in another order are another shard.
module attributes {par.mesh = #par.mesh<cp = 2>} {
func.func @mixed(%x: tensor<4xf32, #par.place<[2 x 4 @cp mirrored]>>, %y: tensor<4xf32, #par.place<[2 x 4 @cp]>>) {
  // expected-error@+1 {{letter *0 is split over cp: operand 1 must be sharded(0) in 2 mirrored blocks, it is sharded(0) in 2 blocks}}
  %z = tx.add %x, %y : (tensor<4xf32, #par.place<[2 x 4 @cp mirrored]>>, tensor<4xf32, #par.place<[2 x 4 @cp]>>) -> tensor<4xf32, #par.place<[2 x 4 @cp mirrored]>>
  return
}
}

// -----

module attributes {par.mesh = #par.mesh<cp = 2>} {
func.func @other_order(%x: tensor<8xf32>) {
  // expected-error@+1 {{over "cp" expects a shard that is split along dimension 0 in 2 blocks, it is 'tensor<4xf32, #par.place<[2 x 4 @cp mirrored]>>'}}
  %y = par.narrow %x over "cp" along 0 in 2 blocks : tensor<8xf32> -> tensor<4xf32, #par.place<[2 x 4 @cp mirrored]>>
  return
}
}

// -----

// No collective moves such shards.
module attributes {par.mesh = #par.mesh<cp = 2>} {
func.func @gathered(%x: tensor<4xf32, #par.place<[2 x 4 @cp mirrored]>>) {
  // expected-error@+1 {{over "cp" expects a shard that is split along dimension 0 in 2 blocks, it is 'tensor<4xf32, #par.place<[2 x 4 @cp mirrored]>>'}}
  %y = par.all_gather %x over "cp" along 0 in 2 blocks : tensor<4xf32, #par.place<[2 x 4 @cp mirrored]>> -> tensor<8xf32>
  return
}
}

// -----

module attributes {par.mesh = #par.mesh<cp = 2>} {
func.func @odd(%x: tensor<12xf32>) {
  // expected-error@+1 {{in 3 blocks, of which not every second one is mirrored}}
  %y = par.narrow %x over "cp" along 0 in 3 blocks mirrored : tensor<12xf32> -> tensor<6xf32>
  return
}
}

// -----

// A shard of two blocks begins at two places.
module attributes {par.mesh = #par.mesh<cp = 2>} {
func.func @one_index() {
  // expected-error@+1 {{expects one element per block of a rank of the axes that split a dimension of 16}}
  %0 = par.first_index of 16 : tensor<1xi64, #par.place<[2 x 1 @cp mirrored]>>
  return
}
}

// -----

// Dropout numbers the elements of one shard.
module attributes {par.mesh = #par.mesh<cp = 2>} {
func.func @dropped(%x: tensor<4xf32, #par.place<[2 x 4 @cp mirrored]>>) {
  // expected-error@+1 {{numbers the elements of one shard, 'tensor<4xf32, #par.place<[2 x 4 @cp mirrored]>>' is several, one in each block}}
  %y = tx.dropout %x ratio 0.5 id 1 : (tensor<4xf32, #par.place<[2 x 4 @cp mirrored]>>) -> tensor<4xf32, #par.place<[2 x 4 @cp mirrored]>>
  return
}
}
