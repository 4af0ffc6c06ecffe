// RUN: partita-opt %s --pipe-cut --split-input-file --verify-diagnostics

module attributes {pipe.stages = 2} {
train.parameter @a : tensor<4xf32> {pipe.on = array<i64: 0>}
train.parameter @b : tensor<4xf32> {pipe.on = array<i64: 1>}
func.func @f() -> tensor<4xf32> {
  %a = train.read @a : tensor<4xf32>
  %b = train.read @b : tensor<4xf32>
  // expected-error@+1 {{'tx.mul' has no stage in common: operand 0 is on stage 0, operand 1 is on stage 1}}
  %0 = tx.mul %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
}

// -----

module attributes {pipe.stages = 2} {
train.parameter @a : tensor<4xf32> {pipe.on = array<i64: 0>}
train.parameter @b : tensor<4xf32> {pipe.on = array<i64: 1>}
func.func @f() {
  %a = train.read @a : tensor<4xf32>
  // expected-error@+1 {{'train.write' has no stage in common: operand 0 is on stage 0, @b is on stage 1}}
  train.write @b, %a : tensor<4xf32>
  return
}
}

// -----

// A sum that nothing completes: what reads it may not be linear.
module attributes {pipe.stages = 2} {
train.parameter @a : tensor<4xf32> {pipe.on = array<i64: 0>}
train.parameter @b : tensor<4xf32> {pipe.on = array<i64: 1>}
train.parameter @c : tensor<4xf32> {pipe.on = array<i64: 0, 1>}
func.func @f() {
  %a = train.read @a : tensor<4xf32>
  %b = train.read @b : tensor<4xf32>
  %0 = tx.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // expected-error@+1 {{'train.write' has no stage in common: operand 0 is in parts on stages 0, 1, @c is on stages 0, 1}}
  train.write @c, %0 : tensor<4xf32>
  return
}
}

// -----

module attributes {pipe.stages = 3} {
train.parameter @a : tensor<4xf32> {pipe.on = array<i64: 0>}
func.func @f() -> tensor<4xf32> {
  %a = train.read @a : tensor<4xf32>
  // expected-error@+1 {{'pipe.move' expects a value on stage 1, but it is complete on stage 0}}
  %0 = pipe.move %a over <1 to 2> : tensor<4xf32>
  return %0 : tensor<4xf32>
}
}

// -----

module attributes {pipe.stages = 2} {
train.parameter @a : tensor<4xf32> {pipe.on = array<i64: 0, 1>}
func.func @f() -> tensor<4xf32> {
  %a = train.read @a : tensor<4xf32>
  // expected-error@+1 {{'pipe.sum' expects a partial sum on stages 0, 1, but it is complete on stages 0, 1}}
  %0 = pipe.sum %a on [0, 1] : tensor<4xf32>
  return %0 : tensor<4xf32>
}
}

// -----

module attributes {pipe.stages = 2} {
train.parameter @a : tensor<4xf32> {pipe.on = array<i64: 1>}
func.func @f() -> tensor<4xf32> {
  %a = train.read @a : tensor<4xf32>
  // expected-error@+1 {{'pipe.pin' expects a value on stage 0, but it is complete on stage 1}}
  %0 = pipe.pin %a to 0 : tensor<4xf32>
  return %0 : tensor<4xf32>
}
}

// -----

// exp of a sum is not a sum of parts' exps.
module attributes {pipe.stages = 2} {
train.parameter @a : tensor<4xf32> {pipe.on = array<i64: 0>}
train.parameter @b : tensor<4xf32> {pipe.on = array<i64: 1>}
func.func @f() -> tensor<4xf32> {
  %a = train.read @a : tensor<4xf32>
  %b = train.read @b : tensor<4xf32>
  %0 = tx.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // expected-error@+1 {{'tx.exp' has no stage in common: operand 0 is in parts on stages 0, 1}}
  %1 = tx.exp %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = pipe.sum %1 on [0, 1] : tensor<4xf32>
  return %2 : tensor<4xf32>
}
}

// -----

// An op of the backward pass may be recomputed, and then it is no product with a cotangent.
module attributes {pipe.stages = 2} {
train.parameter @a : tensor<4xf32> {pipe.on = array<i64: 0>}
train.parameter @b : tensor<4xf32> {pipe.on = array<i64: 1>}
func.func @f() -> tensor<4xf32> {
  %a = train.read @a : tensor<4xf32>
  %b = train.read @b : tensor<4xf32>
  %0 = tx.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // expected-error@+1 {{'tx.exp' has no stage in common: operand 0 is in parts on stages 0, 1}}
  %1 = tx.exp %0 {train.backward} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = pipe.sum %1 on [0, 1] : tensor<4xf32>
  return %2 : tensor<4xf32>
}
}

// -----

// Each part would get the full second operand.
module attributes {pipe.stages = 2} {
train.parameter @a : tensor<4xf32> {pipe.on = array<i64: 0>}
train.parameter @b : tensor<4xf32> {pipe.on = array<i64: 1>}
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = train.read @a : tensor<4xf32>
  %b = train.read @b : tensor<4xf32>
  %0 = tx.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // expected-error@+1 {{'tx.sub' has no stage in common: operand 0 is in parts on stages 0, 1}}
  %1 = tx.sub %0, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = pipe.sum %1 on [0, 1] : tensor<4xf32>
  return %2 : tensor<4xf32>
}
}

// -----

module attributes {pipe.stages = 2} {
train.parameter @a : tensor<4xf32> {pipe.on = array<i64: 0>}
train.parameter @b : tensor<4xf32> {pipe.on = array<i64: 1>}
func.func @f() -> tensor<4xf32> {
  %a = train.read @a : tensor<4xf32>
  %b = train.read @b : tensor<4xf32>
  %0 = tx.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // expected-error@+1 {{result 0 is in parts on stages 0, 1, and nothing completes the sum}}
  return %0 : tensor<4xf32>
}
}

// -----

// One of two copies would be left unwritten.
module attributes {pipe.stages = 2} {
train.parameter @a : tensor<4xf32> {pipe.on = array<i64: 0, 1>}
train.parameter @b : tensor<4xf32> {pipe.on = array<i64: 1>}
func.func @f() {
  %b = train.read @b : tensor<4xf32>
  // expected-error@+1 {{'train.write' has no stage in common: operand 0 is on stage 1, @a is on stages 0, 1}}
  train.write @a, %b : tensor<4xf32>
  return
}
}

// -----

module attributes {pipe.stages = 2} {
train.parameter @a : tensor<4xf32>
func.func @f() -> tensor<4xf32> {
  // expected-error@+1 {{'train.read' is of a parameter without pipe.on}}
  %a = train.read @a : tensor<4xf32>
  return %a : tensor<4xf32>
}
}

// -----

// With several chunks a stage, ops are at positions.
module attributes {pipe.stages = 2, pipe.chunks = 2} {
train.parameter @a : tensor<4xf32> {pipe.on = array<i64: 0>}
train.parameter @b : tensor<4xf32> {pipe.on = array<i64: 2>}
func.func @f() -> tensor<4xf32> {
  %a = train.read @a : tensor<4xf32>
  %b = train.read @b : tensor<4xf32>
  // expected-error@+1 {{'tx.mul' has no position in common: operand 0 is on position 0, operand 1 is on position 2}}
  %0 = tx.mul %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
}

// -----

// A schedule has no slot in which position 2 could wait for position 0.
module attributes {pipe.stages = 3} {
train.parameter @a : tensor<4xf32> {pipe.on = array<i64: 0>}
func.func @f(%xs: tensor<2x4xf32>) -> tensor<4xf32> {
  %a = train.read @a : tensor<4xf32>
  %0 = train.accumulate (%x = %xs) : (tensor<2x4xf32>) -> tensor<4xf32> {
    %y = tx.mul %x, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    // expected-error@+1 {{'pipe.move' leads from 0 to 2, and a forward pass sends only to the next position, or saves for a later chunk of its own stage}}
    %m = pipe.move %y over <0 to 2> : tensor<4xf32>
    train.yield saves %m : tensor<4xf32>
  } backward (%x2, %m2) {
    train.yield %m2 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
}

// -----

module attributes {pipe.stages = 2, pipe.chunks = 2} {
train.parameter @a : tensor<4xf32> {pipe.on = array<i64: 0>}
func.func @f(%xs: tensor<2x4xf32>) -> tensor<4xf32> {
  %a = train.read @a : tensor<4xf32>
  %0 = train.accumulate (%x = %xs) : (tensor<2x4xf32>) -> tensor<4xf32> {
    %y = tx.mul %x, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    // expected-error@+1 {{'pipe.sum' stands in a loop over micro-batches whose stages have 2 chunks, which run it at different times}}
    %m = pipe.sum %y on [0, 2] : tensor<4xf32>
    train.yield saves %m : tensor<4xf32>
  } backward (%x2, %m2) {
    train.yield %m2 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
}

// -----

module attributes {pipe.stages = 2} {
train.parameter @a : tensor<4xf32> {pipe.on = array<i64: 0>}
func.func @f(%xs: tensor<2x4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{has a weights region; before the cut there are a forward and a backward one}}
  %0 = train.accumulate (%x = %xs) : (tensor<2x4xf32>) -> tensor<4xf32> {
    train.yield
  } backward (%x2) {
    train.yield
  } weights (%x3) {
    train.yield %x3 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
}

// -----

// `expand-norms` sums the norm over the stages first.
module attributes {pipe.stages = 2} {
train.parameter @a : tensor<4xf32> {pipe.on = array<i64: 0>}
train.parameter @b : tensor<4xf32> {pipe.on = array<i64: 1>}
func.func @f() -> tensor<f32> {
  %a = train.read @a : tensor<4xf32>
  %b = train.read @b : tensor<4xf32>
  // expected-error@+1 {{'train.global_norm' reads operand 0 on stage 0, and every stage needs its result: expand it before the cut}}
  %0 = train.global_norm %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
}
