// RUN: partita-opt %s -split-input-file -verify-diagnostics

!term = tensor<4xf32, #par.place<[4], partial [dp]>>
!worker = tensor<1x4xf32, #par.place<[2 @dp, 4]>>
!server = tensor<2xf32, #par.place<[4], flat [dp]>>
module attributes {par.mesh = #par.mesh<dp = 2>} {
func.func @two(%x: !term, %w: !worker, %t: tensor<f32>) {
  // expected-error@+1 {{needs values, as many errors of workers and of servers, and a result for each; it has 2 operands and 2 results}}
  %y:2 = par.one_bit_all_reduce %x, %w at %t : tensor<f32> over "dp" exact until 1 : (!term, !worker) -> (tensor<4xf32>, !worker)
  return
}
}

// -----

!term = tensor<4xf32, #par.place<[4], partial [dp, tp]>>
!worker = tensor<1x4xf32, #par.place<[2 @dp, 4]>>
!server = tensor<2xf32, #par.place<[4], flat [dp]>>
module attributes {par.mesh = #par.mesh<dp = 2, tp = 2>} {
func.func @both(%x: !term, %w: !worker, %s: !server, %t: tensor<f32>) {
  // expected-error@+1 {{over "dp" expects partial sums over this axis alone, found 'tensor<4xf32, #par.place<[4], partial [dp, tp]>>'; sum over other axes first, exactly}}
  %y:3 = par.one_bit_all_reduce %x, %w, %s at %t : tensor<f32> over "dp" exact until 1 : (!term, !worker, !server) -> (tensor<4xf32>, !worker, !server)
  return
}
}

// -----

!term = tensor<4xf32, #par.place<[4], partial [dp]>>
!worker = tensor<2x4xf32>
!server = tensor<2xf32, #par.place<[4], flat [dp]>>
module attributes {par.mesh = #par.mesh<dp = 2>} {
func.func @all_rows(%x: !term, %w: !worker, %s: !server, %t: tensor<f32>) {
  // expected-error@+1 {{of 'tensor<4xf32, #par.place<[4], partial [dp]>>' over "dp" expects 'tensor<1x4xf32, #par.place<[2 @dp, 4]>>', found 'tensor<2x4xf32>'}}
  %y:3 = par.one_bit_all_reduce %x, %w, %s at %t : tensor<f32> over "dp" exact until 1 : (!term, !worker, !server) -> (tensor<4xf32>, !worker, !server)
  return
}
}

// -----

!term = tensor<3x3xf32, #par.place<[3, 5 @tp], partial [dp]>>
!worker = tensor<1x3x3xf32, #par.place<[2 @dp, 3, 5 @tp]>>
!server = tensor<5xf32, #par.place<[3, 5 @tp], flat [dp]>>
module attributes {par.mesh = #par.mesh<dp = 2, tp = 2>} {
func.func @padded_rows(%x: !term, %w: !worker, %s: !server, %t: tensor<f32>) {
  // expected-error@+1 {{leaves out padding at the end of a shard, and 'tensor<3x3xf32, #par.place<[3, 5 @tp], partial [dp]>>' has some elsewhere}}
  %y:3 = par.one_bit_all_reduce %x, %w, %s at %t : tensor<f32> over "dp" exact until 1 : (!term, !worker, !server) -> (tensor<3x3xf32, #par.place<[3, 5 @tp]>>, !worker, !server)
  return
}
}

// -----

!term = tensor<f32, #par.place<[], partial [dp]>>
module attributes {par.mesh = #par.mesh<dp = 2>} {
func.func @scalar(%x: !term, %t: tensor<f32>) {
  // expected-error@+1 {{has no shards of 'tensor<f32, #par.place<[], partial [dp]>>': a scalar has none, and flat shards no more}}
  %y:3 = par.one_bit_all_reduce %x, %x, %x at %t : tensor<f32> over "dp" exact until 1 : (!term, !term, !term) -> (tensor<f32>, !term, !term)
  return
}
}

// -----

!term = tensor<4xf32, #par.place<[4], partial [dp]>>
module attributes {par.mesh = #par.mesh<dp = 2>} {
func.func @own_steps(%g: !term, %m: tensor<4xf32>, %t: tensor<f32, #par.place<[], partial [dp]>>) {
  // expected-error@+1 {{decides by a step's number of type 'tensor<f32, #par.place<[], partial [dp]>>', which is not one f32 that all ranks have}}
  %x = par.one_bit_term %g, %m at %t : tensor<f32, #par.place<[], partial [dp]>> over "dp" beta 0.9 exact until 1 : !term, tensor<4xf32> -> !term
  return
}
}

// -----

!term = tensor<4xf32, #par.place<[4], partial [dp]>>
module attributes {par.mesh = #par.mesh<dp = 2>} {
func.func @partial_mean(%g: !term, %t: tensor<f32>) {
  // expected-error@+1 {{expects a mean of type 'tensor<4xf32>', found 'tensor<4xf32, #par.place<[4], partial [dp]>>'}}
  %x = par.one_bit_term %g, %g at %t : tensor<f32> over "dp" beta 0.9 exact until 1 : !term, !term -> !term
  return
}
}

// -----

!term = tensor<4xf32, #par.place<[4], partial [dp]>>
module attributes {par.mesh = #par.mesh<dp = 2>} {
func.func @nothing_kept(%g: !term, %m: tensor<4xf32>, %t: tensor<f32>) {
  // expected-error@+1 {{keeps 1.000000e+00 of a mean, expected a number in [0, 1)}}
  %x = par.one_bit_term %g, %m at %t : tensor<f32> over "dp" beta 1.0 exact until 1 : !term, tensor<4xf32> -> !term
  return
}
}

// -----

!shard = tensor<2xf32, #par.place<[4], flat [dp]>>
module attributes {par.mesh = #par.mesh<dp = 2>} {
func.func @of_a_shard(%g: !shard, %m: !shard, %t: tensor<f32>) {
  // expected-error@+1 {{over "dp" expects what its ranks have in full, found 'tensor<2xf32, #par.place<[4], flat [dp]>>'}}
  %x = par.one_bit_mean %g, %m at %t : tensor<f32> over "dp" beta 0.9 exact until 1 : !shard
  return
}
}

// -----

module attributes {par.mesh = #par.mesh<dp = 2>} {
func.func @kept_below_none(%g: tensor<4xf32>, %m: tensor<4xf32>, %t: tensor<f32>) {
  // expected-error@+1 {{keeps -1.000000e+00 of a mean, expected a number in [0, 1)}}
  %x = par.one_bit_mean %g, %m at %t : tensor<f32> over "dp" beta -1.0 exact until 1 : tensor<4xf32>
  return
}
}

// -----

module attributes {par.mesh = #par.mesh<dp = 2>} {
func.func @fewer_than_none(%scale: tensor<f32>, %t: tensor<f32>) {
  // expected-error@+1 {{sums are exact in -2 steps of each interval, expected a number from 0 on}}
  %a, %b, %c = par.one_bit_clip %scale, %scale at %t : tensor<f32> beta 0.9 exact until 1 doubling -2 : tensor<f32>
  return
}
}

// -----

module attributes {par.mesh = #par.mesh<dp = 2>} {
func.func @factors_kept_for_good(%scale: tensor<f32>, %t: tensor<f32>) {
  // expected-error@+1 {{keeps 1.000000e+00 of a mean, expected a number in [0, 1)}}
  %a, %b, %c = par.one_bit_clip %scale, %scale at %t : tensor<f32> beta 1.0 exact until 1 : tensor<f32>
  return
}
}

// -----

func.func @ratio_of_none(%x: tensor<5xf32>, %t: tensor<f32>) {
  // expected-error@+1 {{of "adamw": no optimizer with a ratio}}
  %0 = train.direction_squares %x, %x, %x, %x, %t of "adamw" {hyper = {}} : (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<f32>) -> tensor<2xf64>
  return
}

// -----

func.func @too_few_states(%x: tensor<5xf32>, %t: tensor<f32>) {
  // expected-error@+1 {{of "onebit_lamb" takes 6 operands and perhaps a scale, not 5}}
  %0:2 = train.direction_squares %x, %x, %x, %x, %t of "onebit_lamb" {hyper = {}} : (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<f32>) -> (tensor<3xf64>, tensor<1xf64>)
  return
}

// -----

func.func @no_max(%x: tensor<5xf32>, %t: tensor<f32>) {
  // expected-error@+1 {{of "onebit_lamb" has 3 sums and 1 maxima, not 'tensor<3xf64>'}}
  %0 = train.direction_squares %x, %x, %x, %x, %x, %t of "onebit_lamb" {hyper = {}} : (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<f32>) -> tensor<3xf64>
  return
}

// -----

func.func @ratio_without_warm_up(%x: tensor<5xf32>, %t: tensor<f32>) {
  // expected-error@+1 {{has no number freeze}}
  %0:3 = train.frozen_trust_ratio %x, %x, %x, %x, %x, %t with %t, %t {coeff_beta = 0.9, factor_max = 4.0, factor_min = 0.5, factor_threshold = 0.1, least = 0.01, most = 10.0, hyper = {beta1 = 0.9, beta2 = 0.99, epsilon = 1.0e-8, decay = 0.0}} : (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>)
  return
}

// -----

func.func @ratio_of_too_little(%x: tensor<5xf32>, %t: tensor<f32>) {
  // expected-error@+1 {{takes a value, a gradient, 3 states and t, not 5 operands}}
  %0:3 = train.frozen_trust_ratio %x, %x, %x, %x, %t with %t, %t {coeff_beta = 0.9, factor_max = 4.0, factor_min = 0.5, factor_threshold = 0.1, least = 0.01, most = 10.0, hyper = {beta1 = 0.9, beta2 = 0.99, epsilon = 1.0e-8, decay = 0.0, freeze = 10.0, compressed = 0.0}} : (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>)
  return
}

// -----

func.func @no_hyperparameters(%x: tensor<5xf32>, %t: tensor<f32>) {
  // expected-error@+1 {{has no number beta1}}
  %0 = train.direction_squares %x, %x, %x, %x, %t of "lamb" {hyper = {}} : (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<f32>) -> tensor<2xf64>
  return
}
