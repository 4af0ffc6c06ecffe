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

// Groups of two micro-batches, each through one pass after the other.
// CHECK-LABEL: func.func @groups
// CHECK: } {order = #train.order<1 x (forward 0), 2 x [1 x (forward 1, forward 2), 2 x (backward 0)] by 2, 1 x (backward 4)>}
func.func @groups(%xs: tensor<5x4xf32>) {
  %0:2 = train.accumulate (%x = %xs) : (tensor<5x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    train.yield %x : tensor<4xf32>
  } backward (%x1) {
    train.yield %x1 : tensor<4xf32>
  } {order = #train.order<1 x (forward 0), 2 x [1 x (forward 1, forward 2), 2 x (backward 0)] by 2, 1 x (backward 4)>}
  return
}

// -----

func.func @groups_overlap(%xs: tensor<3x4xf32>) {
  // expected-error @+1 {{has an order in which 'forward 1' stands twice}}
  %0:2 = train.accumulate (%x = %xs) : (tensor<3x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    train.yield %x : tensor<4xf32>
  } backward (%x1) {
    train.yield %x1 : tensor<4xf32>
  } {order = #train.order<2 x [2 x (forward 0), 2 x (backward 0)]>}
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

// -----

// CHECK-LABEL: @one_list
// CHECK-SAME: #train.order<2 x (forward 0, backward 0) by 3>
func.func private @one_list() attributes {test.order = #train.order<2 x [1 x (forward 0, backward 0)] by 3>}

// -----

// expected-error @+1 {{a run is how many times it runs, from 1 on, and its slots}}
func.func private @no_step() attributes {test.order = #train.order<2 x (forward 0) by 0>}

// -----

// expected-error @+1 {{a run is how many times it runs, from 1 on, and its slots}}
func.func private @never_inside() attributes {test.order = #train.order<2 x [1 x (forward 0), 0 x (backward 0)] by 2>}

// -----

// expected-error @+1 {{an order has at most 4194304 slots}}
func.func private @too_many() attributes {test.order = #train.order<1048576 x [1048576 x (forward 0)]>}

// -----

// expected-error @+1 {{an order has at most 4194304 slots}}
func.func private @too_far() attributes {test.order = #train.order<4 x (forward 0) by 4611686018427387904>}
