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
