// RUN: not partita-opt %s --plan-memory --split-input-file 2>&1 | FileCheck %s

train.parameter @w : tensor<4xf32>
func.func @overwritten_too_early(%g: tensor<4xf32>) -> tensor<4xf32> {
  %w = train.read @w : tensor<4xf32>
  // CHECK: :[[#@LINE+1]]:3: error: 'train.write' op overwrites @w, whose old value is still read below
  train.write @w, %g : tensor<4xf32>
  %0 = tx.exp %w : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

train.parameter @w : tensor<4xf32>
func.func @written_twice(%g: tensor<4xf32>) {
  train.write @w, %g : tensor<4xf32>
  // CHECK: error: 'train.write' op writes @w a second time in one step
  train.write @w, %g : tensor<4xf32>
  return
}

// -----

func.func @no_kernel(%x: tensor<4xf32>) {
  // CHECK: error: 'train.minimize' op has no kernel on this target, on 'tensor<4xf32>'
  train.minimize %x : tensor<4xf32>
  return
}

// -----

train.parameter @w : tensor<8xf32>
func.func @two_placements(%g: tensor<8xf32>) -> tensor<4xf32, #par.place<[8 @dp]>> attributes {par.no_cotangents} {
  // CHECK: error: 'train.write' op of @w has type {{.*}}, elsewhere it is
  %w = train.read @w : tensor<4xf32, #par.place<[8 @dp]>>
  train.write @w, %g : tensor<8xf32>
  return %w : tensor<4xf32, #par.place<[8 @dp]>>
}

// -----

// CHECK: error: argument 0 of @dynamic is of type 'tensor<?xf32>'; memory is planned for tensors of known size only
func.func @dynamic(%x: tensor<?xf32>) {
  return
}

// -----

// CHECK: error: argument 0 of @token is of type 'i64'; memory is planned for tensors of known size only
func.func @token(%x: i64) {
  return
}

// -----

// CHECK: error: @elsewhere has no body to plan memory for
func.func private @elsewhere(%x: tensor<4xf32>)

// -----

// CHECK: error: 'train.parameter' op is of type 'tensor<?xf32>'; memory is planned for tensors of known size only
train.parameter @w : tensor<?xf32>

// -----

#p = #par.place<[4], partial [dp]>
func.func @never_waited(%x: tensor<4xf32, #p>) attributes {par.no_cotangents} {
  // CHECK: error: 'par.all_reduce_start' op needs one wait in its block, for its token and all that it fills, and no other use of them
  %t = par.all_reduce_start %x over "dp" : tensor<4xf32, #p> -> i64
  return
}
