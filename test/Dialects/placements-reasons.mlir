// RUN: partita-opt %s --partition-verify --split-input-file --verify-diagnostics

// An error about a placement tells how the value came by it: op by op, back to what placed it.

// A partial sum is used as if it were complete: from the reshape to the matmul, and to the split weight.
module attributes {par.mesh = #par.mesh<tp = 2>} {
train.parameter @up : tensor<4x16xf32>
train.parameter @down : tensor<16x4xf32>
func.func @not_completed(%x: tensor<8x4xf32, #par.place<[8, 4], replicated [tp]>>) {
  %up = train.read @up : tensor<4x8xf32, #par.place<[4, 16 @tp]>>
  // expected-note@+1 {{there operand 1 is sharded(0) over tp: 'train.read' of 'down' gives it so}}
  %down = train.read @down : tensor<8x4xf32, #par.place<[16 @tp, 4]>>
  %h = tx.matmul %x, %up : (tensor<8x4xf32, #par.place<[8, 4], replicated [tp]>>, tensor<4x8xf32, #par.place<[4, 16 @tp]>>) -> tensor<8x8xf32, #par.place<[8, 16 @tp]>>
  // expected-note@+1 {{there operand 0 is partial over tp: tp splits letter k of 'tx.matmul', which it sums over (rule '~* k+, ~k+ n -> * n')}}
  %y = tx.matmul %h, %down : (tensor<8x8xf32, #par.place<[8, 16 @tp]>>, tensor<8x4xf32, #par.place<[16 @tp, 4]>>) -> tensor<8x4xf32, #par.place<[8, 4], partial [tp]>>
  // expected-note@+1 {{operand 0 is partial over tp: 'tx.reshape' is linear in it and leaves the sum open}}
  %z = tx.reshape %y : tensor<8x4xf32, #par.place<[8, 4], partial [tp]>> -> tensor<32xf32, #par.place<[32], partial [tp]>>
  // expected-error@+1 {{operand 0 is a partial sum over tp, and the op is not linear in it}}
  %e = tx.exp %z : (tensor<32xf32, #par.place<[32], partial [tp]>>) -> tensor<32xf32, #par.place<[32], partial [tp]>>
  return
}
}

// -----

// A partial sum is dropped: by an op's own result type, ...
module attributes {par.mesh = #par.mesh<dp = 2>} {
// expected-note@+1 {{there operand 0 is sharded(0) over dp: it is argument 0 of @dropped_by_type}}
func.func @dropped_by_type(%x: tensor<4x4xf32, #par.place<[8 @dp, 4]>>) {
  // expected-error@+2 {{result 0 is 'tensor<4xf32, #par.place<[4], partial [dp]>>', not 'tensor<4xf32>'}}
  // expected-note@+1 {{result 0 is partial over dp: dp splits letter a of 'tx.reduce_sum', which it sums over (rule '~a+ b -> b')}}
  %y = tx.reduce_sum %x [0] : tensor<4x4xf32, #par.place<[8 @dp, 4]>> -> tensor<4xf32>
  return
}
}

// -----

// ... by what is minimized, ...
module attributes {par.mesh = #par.mesh<dp = 2>} {
// expected-note@+1 {{there operand 0 is sharded(0) over dp: it is argument 0 of @dropped_by_minimize}}
func.func @dropped_by_minimize(%x: tensor<4xf32, #par.place<[8 @dp]>>) {
  // expected-note@+1 {{it is partial over dp: dp splits letter a of 'tx.reduce_sum', which it sums over}}
  %s = tx.reduce_sum %x [0] : tensor<4xf32, #par.place<[8 @dp]>> -> tensor<f32, #par.place<[], partial [dp]>>
  // expected-error@+1 {{minimizes a partial sum over "dp"}}
  train.minimize %s : tensor<f32, #par.place<[], partial [dp]>>
  return
}
}

// -----

// ... by the update of a parameter.
module attributes {par.mesh = #par.mesh<dp = 2>} {
train.parameter @w : tensor<4x6xf32>
// expected-note@+1 {{there operand 0 is sharded(0) over dp: it is argument 0 of @dropped_by_update}}
func.func @dropped_by_update(%x: tensor<4x4xf32, #par.place<[8 @dp, 4]>>, %g: tensor<4x6xf32, #par.place<[8 @dp, 6]>>) attributes {par.no_cotangents} {
  %w = train.read @w : tensor<4x6xf32>
  // expected-note@+1 {{the gradient is partial over dp: dp splits letter *0 of 'tx.matmul_tn', which it sums over}}
  %dw = tx.matmul_tn %x, %g : (tensor<4x4xf32, #par.place<[8 @dp, 4]>>, tensor<4x6xf32, #par.place<[8 @dp, 6]>>) -> tensor<4x6xf32, #par.place<[4, 6], partial [dp]>>
  // expected-error@+1 {{of 'w' by a gradient that is a partial sum over "dp": every rank would update by its own share}}
  train.update @w, %w by %dw : tensor<4x6xf32>, tensor<4x6xf32, #par.place<[4, 6], partial [dp]>>
  return
}
}

// -----

// A shard is used as if it were full: both sides of the contradiction.
module attributes {par.mesh = #par.mesh<tp = 2>} {
train.parameter @up : tensor<4x16xf32>
train.parameter @full : tensor<16x4xf32>
func.func @as_if_full(%x: tensor<8x4xf32, #par.place<[8, 4], replicated [tp]>>) {
  // expected-note@+1 {{there operand 1 is sharded(1) over tp: 'train.read' of 'up' gives it so}}
  %up = train.read @up : tensor<4x8xf32, #par.place<[4, 16 @tp]>>
  // expected-note@+1 {{operand 1 is invariant over tp: 'train.read' of 'full' gives it so}}
  %w = train.read @full : tensor<16x4xf32>
  // expected-note@+1 {{there operand 0 is sharded(1) over tp: tp splits letter n of 'tx.matmul' (rule '~* k+, ~k+ n -> * n')}}
  %h = tx.matmul %x, %up : (tensor<8x4xf32, #par.place<[8, 4], replicated [tp]>>, tensor<4x8xf32, #par.place<[4, 16 @tp]>>) -> tensor<8x8xf32, #par.place<[8, 16 @tp]>>
  // expected-note@+1 {{operand 0 is sharded(1) over tp: tp splits letter *1 of 'tx.relu' (rule '* -> *')}}
  %a = tx.relu %h : (tensor<8x8xf32, #par.place<[8, 16 @tp]>>) -> tensor<8x8xf32, #par.place<[8, 16 @tp]>>
  // expected-error@+1 {{letter k is split over tp: operand 1 must be sharded(0), it is invariant}}
  %y = "tx.matmul"(%a, %w) : (tensor<8x8xf32, #par.place<[8, 16 @tp]>>, tensor<16x4xf32>) -> tensor<8x4xf32, #par.place<[8, 4], partial [tp]>>
  return
}
}

// -----

// A sum is reduced twice; after an op that computes alike on every rank, that is as far as the reasons go.
module attributes {par.mesh = #par.mesh<tp = 2>} {
func.func @reduced_twice(%x: tensor<4xf32, #par.place<[4], partial [tp]>>) {
  // expected-note@+1 {{it is invariant over tp: 'par.g' completes the sum}}
  %y = par.g %x over "tp" : tensor<4xf32, #par.place<[4], partial [tp]>> -> tensor<4xf32>
  // expected-error@+1 {{over "tp" expects a value that is partial, it is invariant}}
  %z = par.g %y over "tp" : tensor<4xf32> -> tensor<4xf32>
  return
}
}

// -----

// Of a long way the first steps and the last ones.
module attributes {par.mesh = #par.mesh<tp = 2>} {
// expected-note@+1 {{there operand 0 is sharded(0) over tp: it is argument 0 of @long_way}}
func.func @long_way(%x: tensor<4xf32, #par.place<[8 @tp]>>) {
  // expected-note@+1 {{there operand 0 is sharded(0) over tp: tp splits letter *0 of 'tx.exp'}}
  %1 = tx.exp %x : (tensor<4xf32, #par.place<[8 @tp]>>) -> tensor<4xf32, #par.place<[8 @tp]>>
  // expected-note@+1 {{there operand 0 is sharded(0) over tp: tp splits letter *0 of 'tx.tanh'}}
  %2 = tx.tanh %1 : (tensor<4xf32, #par.place<[8 @tp]>>) -> tensor<4xf32, #par.place<[8 @tp]>>
  %3 = tx.exp %2 : (tensor<4xf32, #par.place<[8 @tp]>>) -> tensor<4xf32, #par.place<[8 @tp]>>
  %4 = tx.exp %3 : (tensor<4xf32, #par.place<[8 @tp]>>) -> tensor<4xf32, #par.place<[8 @tp]>>
  // expected-note@+1 {{and 3 steps back from here}}
  %5 = tx.exp %4 : (tensor<4xf32, #par.place<[8 @tp]>>) -> tensor<4xf32, #par.place<[8 @tp]>>
  // expected-note@+1 {{there operand 0 is sharded(0) over tp}}
  %6 = tx.exp %5 : (tensor<4xf32, #par.place<[8 @tp]>>) -> tensor<4xf32, #par.place<[8 @tp]>>
  // expected-note@+1 {{it is sharded(0) over tp}}
  %7 = tx.exp %6 : (tensor<4xf32, #par.place<[8 @tp]>>) -> tensor<4xf32, #par.place<[8 @tp]>>
  // expected-error@+1 {{over "tp" expects a value that is invariant, it is sharded}}
  %8 = par.f %7 over "tp" : tensor<4xf32, #par.place<[8 @tp]>> -> tensor<4xf32, #par.place<[8 @tp]>>
  return
}
}
