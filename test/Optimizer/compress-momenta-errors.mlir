// RUN: partita-opt %s --split-input-file --verify-diagnostics --optimize="kind=onebit-adam freeze-step=10 bias-correction" --compress-momenta

// All that ranks sum is a few elements.
!scalar = tensor<f32, #par.place<[], partial [dp]>>
!few = tensor<5xf32, #par.place<[5], partial [dp]>>
module attributes {par.mesh = #par.mesh<dp = 4>} {
train.parameter @s : tensor<f32>
train.parameter @b : tensor<5xf32>
func.func @train_step(%gs: !scalar, %gb: !few) attributes {par.no_cotangents, train.entry_point = #train.entry_point<train_step>} {
  %s = train.read @s : tensor<f32>
  %b = train.read @b : tensor<5xf32>
  %0 = par.all_reduce %gs over "dp" because "gradient" : !scalar -> tensor<f32>
  %1 = par.all_reduce %gb over "dp" because "gradient" : !few -> tensor<5xf32>
  // expected-error@+1 {{onebit-adam over several ranks has no sum of a gradient over dp that bits make smaller; use adamw or lamb, or a mesh without dp}}
  train.update @s, %s by %0 : tensor<f32>, tensor<f32>
  train.update @b, %b by %1 : tensor<5xf32>, tensor<5xf32>
  return
}
}

// -----

!p = tensor<4x5xf32, #par.place<[4, 5], partial [dp]>>
module attributes {par.mesh = #par.mesh<dp = 2>} {
train.parameter @w : tensor<4x5xf32>
train.parameter @u : tensor<4x5xf32>
func.func @train_step(%gw: !p, %gu: !p) attributes {par.no_cotangents, train.entry_point = #train.entry_point<train_step>} {
  %w = train.read @w : tensor<4x5xf32>
  %u = train.read @u : tensor<4x5xf32>
  %0:2 = par.all_reduce %gw, %gu over "dp" because "gradient" : !p, !p -> tensor<4x5xf32>, tensor<4x5xf32>
  // expected-error@+1 {{onebit-adam over several ranks needs a sum and a momentum for each parameter, in its own function}}
  train.update @w, %w by %0#0 : tensor<4x5xf32>, tensor<4x5xf32>
  train.update @u, %u by %0#1 : tensor<4x5xf32>, tensor<4x5xf32>
  return
}
}

// -----

!p = tensor<20xf32, #par.place<[8, 5], partial [dp], flat [tp]>>
!w = tensor<20xf32, #par.place<[8, 5], flat [tp]>>
module attributes {par.mesh = #par.mesh<dp = 2, tp = 2>} {
train.parameter @w : tensor<8x5xf32>
func.func @train_step(%gw: !p) attributes {par.no_cotangents, train.entry_point = #train.entry_point<train_step>} {
  %w = train.read @w : !w
  %0 = par.all_reduce %gw over "dp" because "gradient" : !p -> !w
  // expected-error@+1 {{onebit-adam over several ranks takes parameters that no rank has a shard of; the gradient here is 'tensor<20xf32, #par.place<[8, 5], partial [dp], flat [tp]>>'; use --mesh dp=N alone}}
  train.update @w, %w by %0 : !w, !w
  return
}
}

// -----

// A gradient that the first update is before.
!p = tensor<4x5xf32, #par.place<[4, 5], partial [dp]>>
module attributes {par.mesh = #par.mesh<dp = 2>} {
train.parameter @w : tensor<4x5xf32>
train.parameter @u : tensor<4x5xf32>
func.func @train_step(%gw: !p, %gu: !p) attributes {par.no_cotangents, train.entry_point = #train.entry_point<train_step>} {
  %w = train.read @w : tensor<4x5xf32>
  %u = train.read @u : tensor<4x5xf32>
  %0 = par.all_reduce %gw over "dp" because "gradient" : !p -> tensor<4x5xf32>
  train.update @w, %w by %0 : tensor<4x5xf32>, tensor<4x5xf32>
  %twice = tx.add %gu, %gu : (!p, !p) -> !p
  %1 = par.all_reduce %twice over "dp" because "gradient" : !p -> tensor<4x5xf32>
  // expected-error@+1 {{onebit-adam over several ranks needs all gradients before the first update}}
  train.update @u, %u by %1 : tensor<4x5xf32>, tensor<4x5xf32>
  return
}
}

// -----

// A sum that is changed, and one of sums that has another use.
!p = tensor<4x5xf32, #par.place<[4, 5], partial [dp]>>
module attributes {par.mesh = #par.mesh<dp = 2>} {
train.parameter @w : tensor<4x5xf32>
func.func @train_step(%gw: !p) attributes {par.no_cotangents, train.entry_point = #train.entry_point<train_step>} {
  %w = train.read @w : tensor<4x5xf32>
  %0 = par.all_reduce %gw over "dp" because "gradient" : !p -> tensor<4x5xf32>
  %1 = tx.neg %0 : (tensor<4x5xf32>) -> tensor<4x5xf32>
  // expected-error@+1 {{onebit-adam over several ranks sums a gradient over dp last, in full; here its sum over dp has other uses or is changed before the update}}
  train.update @w, %w by %1 : tensor<4x5xf32>, tensor<4x5xf32>
  return
}
}

// -----

!p = tensor<4x5xf32, #par.place<[4, 5], partial [dp, tp]>>
!q = tensor<4x5xf32, #par.place<[4, 5], partial [tp]>>
module attributes {par.mesh = #par.mesh<dp = 2, tp = 2>} {
train.parameter @w : tensor<4x5xf32>
func.func @train_step(%gw: !p) -> !q attributes {par.no_cotangents, train.entry_point = #train.entry_point<train_step>} {
  %w = train.read @w : tensor<4x5xf32>
  %0 = par.all_reduce %gw over "dp" because "gradient" : !p -> !q
  %1 = par.all_reduce %0 over "tp" because "gradient" : !q -> tensor<4x5xf32>
  // expected-error@+1 {{onebit-adam over several ranks sums a gradient over dp last, in full; here its sum over dp has other uses}}
  train.update @w, %w by %1 : tensor<4x5xf32>, tensor<4x5xf32>
  return %0 : !q
}
}
