// RUN: partita-opt %s --split-input-file --verify-diagnostics

module attributes {par.mesh = #par.mesh<dp = 2, tp = 2>} {
  func.func @dimension(%x: tensor<3x5xf32>) {
    // expected-error @+1 {{over "dp": 'tensor<6xf32, #par.place<[3, 5], flat [dp]>>' is not a shard of 'tensor<3x5xf32>', that is 'tensor<8xf32, #par.place<[3, 5], flat [dp]>>'}}
    %y = zero.shard %x over "dp" : tensor<3x5xf32> -> tensor<6xf32, #par.place<[3, 5], flat [dp]>>
    return
  }
}

// -----

module attributes {par.mesh = #par.mesh<dp = 2>} {
  func.func @partial(%x: tensor<4xf32, #par.place<[4], partial [dp]>>) {
    // expected-note @-1 {{it is partial over dp: it is argument 0 of @partial}}
    // expected-error @+1 {{over "dp" expects a full value that is invariant, it is partial}}
    %y = zero.shard %x over "dp" : tensor<4xf32, #par.place<[4], partial [dp]>> -> tensor<2xf32, #par.place<[4], flat [dp]>>
    return
  }
}

// -----

module attributes {par.mesh = #par.mesh<dp = 2>} {
  func.func @notSummed(%x: tensor<4xf32>) {
    // expected-note @-1 {{it is invariant over dp: it is argument 0 of @notSummed}}
    // expected-error @+1 {{over "dp" expects a full value that is partial, it is invariant}}
    %y = zero.reduce_scatter %x over "dp" : tensor<4xf32> -> tensor<2xf32, #par.place<[4], flat [dp]>>
    return
  }
}

// -----

module attributes {par.mesh = #par.mesh<dp = 2>} {
  func.func @twoAxes(%x: tensor<1xf32, #par.place<[4], flat [dp, tp]>>) {
    // expected-note @-1 {{it is flat over dp: it is argument 0 of @twoAxes}}
    // expected-error @+1 {{over "dp" expects a shard that is flat, it is flat}}
    %y = zero.gather %x over "dp" : tensor<1xf32, #par.place<[4], flat [dp, tp]>> -> tensor<2xf32, #par.place<[4], flat [tp]>>
    return
  }
}

// -----

// A flat shard is no matrix.
module attributes {par.mesh = #par.mesh<dp = 2>} {
  func.func @matmul(%x: tensor<2x2xf32>, %w: tensor<2xf32, #par.place<[2, 2], flat [dp]>>) attributes {par.no_cotangents} {
    // expected-error @+1 {{dp splits the elements of an operand flat, and the op does not treat each element alone}}
    %y = "tx.matmul"(%x, %w) : (tensor<2x2xf32>, tensor<2xf32, #par.place<[2, 2], flat [dp]>>) -> tensor<2x2xf32>
    return
  }
}

// -----

// An update of a shard needs the shard of each operand.
module attributes {par.mesh = #par.mesh<dp = 2>} {
  func.func @update(%w: tensor<2xf32, #par.place<[4], flat [dp]>>, %g: tensor<4xf32>, %rate: tensor<f32>) attributes {par.no_cotangents} {
    // expected-note @-1 {{operand 1 is invariant over dp: it is argument 1 of @update}}
    // expected-error @+1 {{dp splits the elements flat: operand 1 must be flat, it is invariant}}
    %y = train.sgd %w, %g, %rate {decay = 0.0} : (tensor<2xf32, #par.place<[4], flat [dp]>>, tensor<4xf32>, tensor<f32>) -> tensor<2xf32, #par.place<[4], flat [dp]>>
    return
  }
}

// -----

// expected-error @+1 {{mesh axis "dp" is used twice in one placement}}
func.func private @twice(tensor<2xf32, #par.place<[4 @dp], flat [dp]>>)

// -----

module attributes {par.mesh = #par.mesh<dp = 2>} {
  func.func @wait(%x: tensor<2xf32, #par.place<[4], flat [dp]>>, %b: tensor<4xf32>) {
    // expected-error @+1 {{'zero.gather_start' op needs one wait in its block, for its token and all that it fills, and no other use of them}}
    %t, %y = zero.gather_start %x over "dp" : tensor<2xf32, #par.place<[4], flat [dp]>> -> i64, tensor<4xf32>
    %z = par.wait %t, %b : i64, tensor<4xf32> -> tensor<4xf32>
    return
  }
}

// -----

module attributes {par.mesh = #par.mesh<dp = 2>} {
  func.func @token(%t: i64, %b: tensor<4xf32>) {
    // expected-error @+1 {{waits for a token that no op of this block started}}
    %z = par.wait %t, %b : i64, tensor<4xf32> -> tensor<4xf32>
    return
  }
}

// -----

// The start says what its wait yields: this one the full value that it fills.
module attributes {par.mesh = #par.mesh<dp = 2>} {
  func.func @completed(%x: tensor<2xf32, #par.place<[4], flat [dp]>>) {
    %t, %y = zero.gather_start %x over "dp" : tensor<2xf32, #par.place<[4], flat [dp]>> -> i64, tensor<4xf32>
    // expected-error @+1 {{'par.wait' op result 0 is 'tensor<4xf32, #par.place<[8 @dp]>>', but what its start fills is 'tensor<4xf32>'}}
    %z = par.wait %t, %y : i64, tensor<4xf32> -> tensor<4xf32, #par.place<[8 @dp]>>
    return
  }
}

// -----

// A sum in-place is complete at its wait, and not what its start was given.
!p = tensor<4xf32, #par.place<[4], partial [dp]>>
module attributes {par.mesh = #par.mesh<dp = 2>} {
  func.func @summed(%x: !p) attributes {par.no_cotangents} {
    %t = par.all_reduce_start %x over "dp" : !p -> i64
    // expected-error @+1 {{'par.wait' op over "dp" yields 'tensor<4xf32>', not 'tensor<4xf32, #par.place<[4], partial [dp]>>'}}
    %z = par.wait %t, %x : i64, !p -> !p
    return
  }
}

// -----

func.func @copied(%x: tensor<4xf32>) {
  %t, %y = offload.to_host_start %x : tensor<4xf32>
  // expected-error @+1 {{completes a collective, not 'offload.to_host_start'; a copy between device and host has offload.wait}}
  %z = par.wait %t, %y : i64, tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

module attributes {par.mesh = #par.mesh<dp = 2>} {
  func.func @gathered(%x: tensor<2xf32, #par.place<[4], flat [dp]>>) {
    %t, %y = zero.gather_start %x over "dp" : tensor<2xf32, #par.place<[4], flat [dp]>> -> i64, tensor<4xf32>
    // expected-error @+1 {{completes a copy, not 'zero.gather_start'; a collective has par.wait}}
    %z = offload.wait %t, %y : tensor<4xf32>
    return
  }
}
