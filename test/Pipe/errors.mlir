// RUN: partita-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<8xf32>) {
  // expected-error@+1 {{is of no stage: no module around it has pipe.stage}}
  pipe.send %x over <0 to 1> : tensor<8xf32>
  return
}

// -----

module {
module attributes {pipe.stage = 1} {
  func.func @f(%x: tensor<8xf32>) {
    // expected-error@+1 {{is of stage 1, but stage 0 sends over this channel}}
    pipe.send %x over <0 to 1> : tensor<8xf32>
    return
  }
}
}

// -----

module {
module attributes {pipe.stage = 1} {
  func.func @f() {
    // expected-error@+1 {{is of stage 1, but stage 2 receives over this channel}}
    %x = pipe.recv over <0 to 2> : tensor<8xf32>
    return
  }
}
}

// -----

// expected-error@+1 {{a channel leads to another stage, not from 1 to itself}}
module attributes {test = #pipe.channel<1 to 1>} {}

// -----

// expected-error@+1 {{stages and channels are numbered from 0}}
module attributes {test = #pipe.channel<0 to 1, number -1>} {}

// -----

module {
// expected-error@+1 {{pipe.stage is -1 : i64, expected the number of a stage, an i64 from 0}}
module attributes {pipe.stage = -1} {}
}

// -----

// expected-error@+1 {{pipe.stage belongs on a module within the program's module}}
func.func private @f() attributes {pipe.stage = 0}

// -----

// expected-error@+1 {{"pipe.colour" is not an attribute of an op}}
module attributes {pipe.colour = 2} {}

// -----

// expected-error@+1 {{pipe.stages is 1 : i64, expected a number of stages, an i64 from 2 to 64}}
module attributes {pipe.stages = 1} {}

// -----

// expected-error@+1 {{pipe.stages belongs on a module}}
func.func private @f() attributes {pipe.stages = 2}

// -----

module attributes {pipe.stages = 2} {
  // expected-error@+1 {{lists stages [1, 2]; expected distinct stages below 2, in ascending order}}
  func.func private @f() attributes {pipe.on = array<i64: 1, 2>}
}

// -----

// expected-error@+1 {{pipe.on is 1 : i64, expected stages}}
func.func private @f() attributes {pipe.on = 1}

// -----

func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{lists stages [1, 0]; expected distinct stages below 64, in ascending order}}
  %0 = pipe.share %x on [1, 0] : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{lists no stage}}
  %0 = pipe.sum %x on [] : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

module attributes {pipe.stages = 2} {
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{lists stages [1, 2]; expected distinct stages below 2, in ascending order}}
  %0 = pipe.move %x over <2 to 1> : tensor<8xf32>
  return %0 : tensor<8xf32>
}
}

// -----

module {
module attributes {pipe.stage = 0} {
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{is within a stage; values leave one by pipe.send}}
  %0 = pipe.move %x over <0 to 1> : tensor<8xf32>
  return %0 : tensor<8xf32>
}
}
}

// -----

module {
module attributes {pipe.stage = 2} {
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{is of stage 2, which is not among those that it sums}}
  %0 = pipe.sum %x on [0, 1] : tensor<8xf32>
  return %0 : tensor<8xf32>
}
}
}

// -----

module attributes {pipe.stages = 2, pipe.chunks = 2} {
  // expected-error@+1 {{lists positions [0, 4]; expected distinct positions below 4, in ascending order}}
  func.func private @f() attributes {pipe.on = array<i64: 0, 4>}
}

// -----

// expected-error@+1 {{pipe.chunks belongs on a module with pipe.stages or pipe.count}}
module attributes {pipe.chunks = 2} {}

// -----

// expected-error@+1 {{pipe.chunks is 0 : i64, expected a number of chunks, an i64 from 1 to 256}}
module attributes {pipe.stages = 2, pipe.chunks = 0} {}

// -----

// expected-error@+1 {{pipe.chunks is 9 of 32 stages; 256 chunks of all stages are possible}}
module attributes {pipe.stages = 32, pipe.chunks = 9} {}

// -----

// expected-error@+1 {{pipe.wave is a unit, beside pipe.chunks}}
module attributes {pipe.stages = 2, pipe.wave} {}

// -----

// expected-error@+1 {{pipe.cuts is array<i64: 0, 1>, expected the first layer of each of 4 positions, ascending from 0}}
module attributes {pipe.stages = 2, pipe.chunks = 2, pipe.cuts = array<i64: 0, 1>} {}

// -----

// expected-error@+1 {{pipe.cuts is array<i64: 1, 2>, expected the first layer of each of 2 stages, ascending from 0}}
module attributes {pipe.stages = 2, pipe.cuts = array<i64: 1, 2>} {}

// -----

// expected-error@+1 {{pipe.cuts is array<i64: 0, 2, 2>, expected the first layer of each of 3 stages, ascending from 0}}
module attributes {pipe.stages = 3, pipe.cuts = array<i64: 0, 2, 2>} {}

// -----

#work = #train.work<place = 0, matmuls = 0.0, elementwise = 0.0, backward = 0.0, parameters = 0>
// expected-error@+1 {{pipe.cuts is array<i64: 0, 1>, expected layers below 1}}
module attributes {pipe.stages = 2, pipe.cuts = array<i64: 0, 1>, train.work = [#work]} {}

// -----

// expected-error@+1 {{pipe.cuts belongs on a module of stages: with pipe.stages, or after the cut}}
module attributes {pipe.cuts = array<i64: 0, 1>} {}

// -----

// After the cut, the program's list is of the stages in it.
// expected-error@+1 {{pipe.cuts is array<i64: 0>, expected the first layer of each of 2 stages, ascending from 0}}
module attributes {pipe.cuts = array<i64: 0>} {
module attributes {pipe.stage = 0, pipe.count = 2} {}
module attributes {pipe.stage = 1, pipe.count = 2} {}
}

// -----

// The number of stages is checked first: others depend on it.
// expected-error@+1 {{pipe.stages is 100000000 : i64, expected a number of stages, an i64 from 2 to 64}}
module attributes {pipe.stages = 100000000, pipe.chunks = 2, pipe.cuts = array<i64: 0, 1>} {}

// -----

// expected-error@+1 {{pipe.stages is 3, and train.schedule is for 2 stages}}
module attributes {pipe.stages = 3, train.schedule = #train.schedule<name = "1f1b", orders = [#train.order<1 x (forward 0, backward 0)>, #train.order<1 x (forward 0, backward 0)>]>} {}

// -----

// expected-error@+1 {{pipe.axis is 2 : i64, expected a place among the 1 axes of par.mesh}}
module attributes {pipe.stages = 2, pipe.axis = 2, par.mesh = #par.mesh<dp = 2>} {}

// -----

// expected-error@+1 {{pipe.limited is #pipe.limited<limit = 8, cuts = [1, 0], stage = 1, bytes = 9, tried = 0>, expected cuts, and the fullest stage, of the module's stages}}
module attributes {pipe.stages = 2, pipe.limited = #pipe.limited<limit = 8, cuts = [1, 0], stage = 1, bytes = 9, tried = 0>} {}

// -----

// expected-error@+1 {{pipe.limited is #pipe.limited<limit = 8, cuts = [0, 1], stage = 2, bytes = 9, tried = 0>, expected cuts, and the fullest stage, of the module's stages}}
module attributes {pipe.stages = 2, pipe.limited = #pipe.limited<limit = 8, cuts = [0, 1], stage = 2, bytes = 9, tried = 0>} {}

// -----

module {
module attributes {pipe.stage = 0, pipe.count = 2} {
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{lists stages [0, 63]; expected distinct stages below 2, in ascending order}}
  %0 = pipe.sum %x on [0, 63] : tensor<8xf32>
  return %0 : tensor<8xf32>
}
}
}

// -----

// After the cut lists are of stages, however many chunks these have.
module {
module attributes {pipe.stage = 0, pipe.count = 2, pipe.chunks = 2} {
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{lists stages [0, 3]; expected distinct stages below 2, in ascending order}}
  %0 = pipe.share %x on [0, 3] : tensor<8xf32>
  return %0 : tensor<8xf32>
}
}
}

// -----

module {
module attributes {pipe.stage = 1, pipe.count = 2, pipe.chunks = 2} {
func.func @f(%x: tensor<8xf32>) {
  // expected-error@+1 {{has a channel to stage 2; there are 2 stages}}
  pipe.send %x over <1 to 2> : tensor<8xf32>
  return
}
}
}

// -----

module {
module attributes {pipe.stage = 1, pipe.count = 2} {
func.func @f() {
  // expected-error@+1 {{has a channel to stage 2; there are 2 stages}}
  %x = pipe.recv over <2 to 1> : tensor<8xf32>
  return
}
}
}

// -----

module {
// expected-error@+1 {{pipe.count is 0 : i64, expected a number of stages, an i64 from 2 to 64}}
module attributes {pipe.stage = 0, pipe.count = 0} {}
}

// -----

module {
// expected-error@+1 {{pipe.stage is 2 : i64 of 2 stages, which are numbered from 0 to 1}}
module attributes {pipe.stage = 2, pipe.count = 2} {}
}

// -----

// expected-error@+1 {{pipe.count belongs on a module with pipe.stage}}
module attributes {pipe.count = 2} {}

// -----

// Positions 0 and 2 are on stage 0, 1 and 3 on stage 1.
module attributes {pipe.stages = 2, pipe.chunks = 2} {
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-note@+1 {{the other move, from 0 to 1; only the move of its gradient may share its number}}
  %0 = pipe.move %x over <0 to 1> : tensor<8xf32>
  %1 = pipe.move %0 over <1 to 0> : tensor<8xf32>
  // expected-error@+1 {{has channel number 0 between stages 0 and 1, which another move has}}
  %2 = pipe.move %1 over <1 to 2> : tensor<8xf32>
  return %2 : tensor<8xf32>
}
}

// -----

// Two stages pair sums by their order, so the order must be one.
module attributes {pipe.parameters = []} {
module attributes {pipe.stage = 0, pipe.count = 2} {
func.func @f(%x: tensor<8xf32>) {
  // expected-error@+1 {{stages 0 and 1 do not add up the same: where stage 0 has sum 0 of tensor<8xf32>, stage 1 has sum 1 of tensor<8xf32>}}
  %0 = pipe.sum %x on [0, 1] {pipe.number = 0} : tensor<8xf32>
  %1 = pipe.sum %x on [0, 1] {pipe.number = 1} : tensor<8xf32>
  return
}
}
module attributes {pipe.stage = 1, pipe.count = 2} {
func.func @f(%x: tensor<8xf32>) {
  // expected-note@+1 {{stage 1's is here}}
  %0 = pipe.sum %x on [0, 1] {pipe.number = 1} : tensor<8xf32>
  %1 = pipe.sum %x on [0, 1] {pipe.number = 0} : tensor<8xf32>
  return
}
}
}

// -----

// Stages 0 and 2 have no sum between them that stage 1 lacks; 1 and 2 do.
module attributes {pipe.parameters = []} {
module attributes {pipe.stage = 0, pipe.count = 3} {
func.func @f(%x: tensor<8xf32>) {
  %0 = pipe.sum %x on [0, 2] : tensor<8xf32>
  return
}
}
module attributes {pipe.stage = 1, pipe.count = 3} {
func.func @f() {
  return
}
}
module attributes {pipe.stage = 2, pipe.count = 3} {
func.func @f(%x: tensor<8xf32>) {
  %0 = pipe.sum %x on [0, 2] : tensor<8xf32>
  // expected-error@+1 {{stages 1 and 2 do not add up the same: where stage 1 has no further sum, stage 2 has sum of tensor<8xf32>}}
  %1 = pipe.sum %x on [1, 2] : tensor<8xf32>
  return
}
}
}

// -----

module attributes {pipe.parameters = []} {
module attributes {pipe.stage = 0, pipe.count = 2} {
func.func @f(%x: tensor<8xf32>) {
  // expected-error@+1 {{pipe.number is -1 : i64, expected an i64 from 0}}
  %0 = pipe.sum %x on [0] {pipe.number = -1} : tensor<8xf32>
  return
}
}
}

// -----

module attributes {pipe.parameters = []} {
// expected-error@+1 {{pipe.stage is "first", expected the number of a stage, an i64 from 0}}
module attributes {pipe.stage = "first"} {
}
module attributes {pipe.stage = 1} {
}
}

// -----

module {
// expected-error@+1 {{pipe.idle is {"bucket-bytes"}, expected a reason for each option}}
module attributes {pipe.stage = 0, pipe.idle = {"bucket-bytes"}} {
}
}

// -----

// expected-error@+1 {{pipe.idle belongs on a module with pipe.stage}}
module attributes {pipe.idle = {"bucket-bytes" = "it sums nothing"}} {
}

// -----

func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{has 2 copies for 1 positions}}
  %0 = pipe.copies %x, %x on [0] : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{lists stages [0, 0]; expected distinct stages below 64, in ascending order}}
  %0 = pipe.copies %x, %x on [0, 0] : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @f(%x: tensor<8xf32>, %y: tensor<4xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{has a copy of 'tensor<4xf32>', expected 'tensor<8xf32>'}}
  %0 = "pipe.copies"(%x, %y) <{stages = array<i64: 0, 1>}> : (tensor<8xf32>, tensor<4xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// expected-error@+1 {{stages and channels are numbered from 0, channels to 2147483647}}
module attributes {test = #pipe.channel<0 to 1, number 9223372036854775807>} {}

// -----

module {
// expected-error@+1 {{pipe.parameters lists @v twice}}
module attributes {pipe.stage = 0, pipe.parameters = [@v, @v]} {
}
}

// -----

module {
// expected-error@+1 {{pipe.hyper is {beta1 = "x"}, expected hyperparameters by name, each an f64}}
module attributes {pipe.stage = 0, pipe.hyper = {beta1 = "x"}} {
}
}

// -----

// After the cut the mesh is known: without par.mesh it has no axis but pp.
module attributes {pipe.axis = 0} {
// expected-error@+1 {{pipe.axis is 1 : i64, expected a place among the 0 axes of par.mesh}}
module attributes {pipe.stage = 0, pipe.count = 2, pipe.axis = 1} {
}
}
