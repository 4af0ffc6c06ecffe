// RUN: partita-opt %s --split-input-file --verify-diagnostics | FileCheck %s

// Slots of a schedule, run by run.
// CHECK-LABEL: func.func @ordered
// CHECK: } backward (%{{.*}}, %{{.*}}) onto (%{{.*}} = 1) {
// CHECK: } {order = #train.order<2 x (forward 0), 1 x (forward 2, backward 0), 2 x (backward 1)>}
func.func @ordered(%xs: tensor<3x4xf32>) {
  %0:2 = train.accumulate (%x = %xs) : (tensor<3x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    train.yield %x : tensor<4xf32> saves %x : tensor<4xf32>
  } backward (%x1, %y1) onto (%s = 1) {
    %1 = tx.add %y1, %s : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    train.yield %1 : tensor<4xf32>
  } {order = #train.order<2 x (forward 0), 1 x (forward 2, backward 0), 2 x (backward 1)>}
  return
}

// -----

// Of one pass, in which forward and backward passes are joined.
// CHECK-LABEL: func.func @one_pass
// CHECK: } {order = #train.order<2 x (forward 0)>}
func.func @one_pass(%xs: tensor<2x4xf32>) {
  %0 = train.accumulate (%x = %xs) : (tensor<2x4xf32>) -> tensor<4xf32> {
    train.yield %x : tensor<4xf32>
  } {order = #train.order<2 x (forward 0)>}
  return
}

// -----

func.func @no_backward(%xs: tensor<1x4xf32>) {
  // expected-error @+1 {{has no backward region for its order's 'backward 0'}}
  %0 = train.accumulate (%x = %xs) : (tensor<1x4xf32>) -> tensor<4xf32> {
    train.yield %x : tensor<4xf32>
  } {order = #train.order<1 x (forward 0, backward 0)>}
  return
}

// -----

func.func @missing(%xs: tensor<2x4xf32>) {
  // expected-error @+1 {{has an order without 'backward 1'}}
  %0:2 = train.accumulate (%x = %xs) : (tensor<2x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    train.yield %x : tensor<4xf32>
  } backward (%x1) {
    train.yield %x1 : tensor<4xf32>
  } {order = #train.order<2 x (forward 0), 1 x (backward 0)>}
  return
}

// -----

func.func @twice(%xs: tensor<2x4xf32>) {
  // expected-error @+1 {{has an order in which 'forward 0' stands twice}}
  %0:2 = train.accumulate (%x = %xs) : (tensor<2x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    train.yield %x : tensor<4xf32>
  } backward (%x1) {
    train.yield %x1 : tensor<4xf32>
  } {order = #train.order<1 x (forward 0, forward 0), 2 x (backward 0)>}
  return
}

// -----

func.func @backward_first(%xs: tensor<1x4xf32>) {
  // expected-error @+1 {{has an order in which 'backward 0' stands in front of 'forward 0', which it needs}}
  %0:2 = train.accumulate (%x = %xs) : (tensor<1x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    train.yield %x : tensor<4xf32>
  } backward (%x1) {
    train.yield %x1 : tensor<4xf32>
  } {order = #train.order<1 x (backward 0, forward 0)>}
  return
}

// -----

func.func @unknown(%xs: tensor<1x4xf32>) {
  // expected-error @+1 {{has no micro-batch 1 for its order's 'forward 1': there are 1}}
  %0:2 = train.accumulate (%x = %xs) : (tensor<1x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    train.yield %x : tensor<4xf32>
  } backward (%x1) {
    train.yield %x1 : tensor<4xf32>
  } {order = #train.order<2 x (forward 0), 1 x (backward 0)>}
  return
}

// -----

// expected-error @+1 {{a slot is 'forward', 'backward' or 'weights', perhaps with a chunk after a dot, not 'sideways'}}
func.func private @word() attributes {test.order = #train.order<1 x (sideways 0)>}

// -----

// expected-error @+1 {{a run is how many times it runs, from 1 on, and its slots}}
func.func private @never() attributes {test.order = #train.order<0 x (forward 0)>}
