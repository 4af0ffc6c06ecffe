// RUN: not partita-opt %s --plan-memory --lower-to-rt --split-input-file 2>&1 | FileCheck %s

func.func @half(%x: tensor<4xf64>) -> tensor<4xf64> {
  // CHECK: :[[#@LINE+1]]:8: error: 'tx.exp' op has no kernel on this target for 'tensor<4xf64>'; run single-precision first
  %0 = tx.exp %x : (tensor<4xf64>) -> tensor<4xf64>
  return %0 : tensor<4xf64>
}

// -----

func.func @apart(%x: tensor<2x3x4xf32>) -> tensor<3xf32> {
  // CHECK: error: 'tx.reduce_sum' op has no kernel on this target: the reduced dimensions of 'tensor<2x3x4xf32>' are not neighbours
  %0 = tx.reduce_sum %x [0, 2] : tensor<2x3x4xf32> -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

// CHECK: error: argument 0 'ids' of @forward still has the train.role of the import, 'input'; run the objective first
func.func @forward(%x: tensor<4xf32> {train.name = "ids", train.role = "input"}) -> tensor<4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %0 = tx.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// CHECK: error: argument 0 'temperature' of @forward has no train.role, so nothing says how to fill it
func.func @forward(%x: tensor<4xf32> {train.name = "temperature"}) -> tensor<4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %0 = tx.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

#p = #par.place<[4], partial [dp]>
func.func @no_axis(%x: tensor<4xf32, #p>) -> tensor<4xf32> attributes {par.no_cotangents} {
  // CHECK: error: 'par.all_reduce' op is over axis 'dp', which the mesh #par.mesh<> does not have
  %0 = par.all_reduce %x over "dp" : tensor<4xf32, #p> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// CHECK: error: 'train.parameter' op has no `fill` that says how to make a value from a seed; run assign-fill first
train.parameter @w : tensor<6xf32>
func.func @init() attributes {train.entry_point = #train.entry_point<init>} {
  %0 = train.initial_value @w : tensor<6xf32>
  train.write @w, %0 : tensor<6xf32>
  return
}

// -----

// CHECK: error: 'train.state' op gets no initial value: the entry point 'init', @init, does not write it
train.state @m : tensor<6xf32> = 0.0
func.func @init() attributes {train.entry_point = #train.entry_point<init>} {
  return
}

// -----

func.func @integers(%x: tensor<2x3xi64>) -> tensor<2xi64> {
  // CHECK: error: 'tx.reduce_sum' op has no kernel on this target for 'tensor<2x3xi64>'
  %0 = tx.reduce_sum %x [1] : tensor<2x3xi64> -> tensor<2xi64>
  return %0 : tensor<2xi64>
}

// -----

func.func @many_dimensions(%x: tensor<1x2x1x2x1x2x1x2x1xf32>) -> tensor<1x2x1x2x1x2x1x2x1xf32> {
  // CHECK: error: 'tx.exp' op has no kernel on this target for 'tensor<1x2x1x2x1x2x1x2x1xf32>': it has 9 dimensions, more than 8
  %0 = tx.exp %x : (tensor<1x2x1x2x1x2x1x2x1xf32>) -> tensor<1x2x1x2x1x2x1x2x1xf32>
  return %0 : tensor<1x2x1x2x1x2x1x2x1xf32>
}

// -----

// CHECK: error: argument 0 'x' of @forward has 9 dimensions, a program's inputs at most 8
func.func @forward(%x: tensor<1x2x1x2x1x2x1x2x1xf32> {train.name = "x", train.role = "data"}) -> tensor<1x2x1x2x1x2x1x2x1xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  return %x : tensor<1x2x1x2x1x2x1x2x1xf32>
}
