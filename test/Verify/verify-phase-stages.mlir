// What one pipeline stage relies on and another one has. The type and number of messages are those of a call, wherever they are sent.
// RUN: partita-opt %s --split-input-file --verify-diagnostics --verify-phase=after=schedule

module attributes {par.mesh = #par.mesh<dp = 2>, pipe.axis = 0} {
module attributes {par.mesh = #par.mesh<dp = 2>, pipe.axis = 0, pipe.stage = 0, pipe.count = 2} {
func.func @step(%xs: tensor<3x4xf32>) {
  train.accumulate (%x = %xs) : (tensor<3x4xf32>) -> () {
    pipe.send %x over <0 to 1> : tensor<4xf32>
    train.yield
  }
  return
}
}
module attributes {par.mesh = #par.mesh<dp = 2>, pipe.axis = 0, pipe.stage = 1, pipe.count = 2} {
func.func @step(%xs: tensor<2x4xf32>) {
  train.accumulate (%x = %xs) : (tensor<2x4xf32>) -> () {
    %0 = pipe.recv over <0 to 1> : tensor<4xf32>
    train.yield
  }
  %1 = pipe.recv over <0 to 1> : tensor<4xf32>
  return
}
}
}

// -----

module attributes {pipe.axis = 0} {
module attributes {pipe.axis = 0, pipe.stage = 0, pipe.count = 2} {
func.func @step(%x: tensor<4xf32>) {
  // expected-error@+1 {{'pipe.send' op over #pipe.channel<0 to 1>: stage 0 sends 2 values of tensor<4xf32> in a call of @step, and stage 1 receives 1 value of tensor<4xf32> after phase 'schedule'}}
  pipe.send %x over <0 to 1> : tensor<4xf32>
  pipe.send %x over <0 to 1> : tensor<4xf32>
  return
}
}
module attributes {pipe.axis = 0, pipe.stage = 1, pipe.count = 2} {
func.func @step(%x: tensor<4xf32>) {
  // expected-note@+1 {{received here}}
  %0 = pipe.recv over <0 to 1> : tensor<4xf32>
  return
}
}
}

// -----

module attributes {pipe.axis = 0} {
module attributes {pipe.axis = 0, pipe.stage = 0, pipe.count = 2} {
func.func @step(%x: tensor<4xf32>) {
  return
}
}
module attributes {pipe.axis = 0, pipe.stage = 1, pipe.count = 2} {
func.func @step(%x: tensor<4xf32>) {
  // expected-error@+1 {{'pipe.recv' op over #pipe.channel<0 to 1>: stage 0 sends nothing in a call of @step, and stage 1 receives 1 value of tensor<4xf32> after phase 'schedule'}}
  %0 = pipe.recv over <0 to 1> : tensor<4xf32>
  return
}
}
}

// -----

// The order of two values, where one op receives what one other sends.
module attributes {pipe.axis = 0} {
module attributes {pipe.axis = 0, pipe.stage = 0, pipe.count = 2} {
func.func @step(%x: tensor<4xf32>, %y: tensor<2xf32>) {
  // expected-error@+1 {{stage 0 sends 1 value of tensor<4xf32> and 1 value of tensor<2xf32> in a call of @step, and stage 1 receives 1 value of tensor<2xf32> and 1 value of tensor<4xf32>}}
  pipe.send %x over <0 to 1> : tensor<4xf32>
  pipe.send %y over <0 to 1> : tensor<2xf32>
  return
}
}
module attributes {pipe.axis = 0, pipe.stage = 1, pipe.count = 2} {
func.func @step(%x: tensor<4xf32>, %y: tensor<2xf32>) {
  // expected-note@+1 {{received here}}
  %0 = pipe.recv over <0 to 1> : tensor<2xf32>
  %1 = pipe.recv over <0 to 1> : tensor<4xf32>
  return
}
}
}

// -----

module attributes {par.mesh = #par.mesh<dp = 4>, pipe.axis = 0} {
// expected-error@+1 {{'builtin.module' op is stage 0 and has par.mesh #par.mesh<dp = 2>, but the program has par.mesh #par.mesh<dp = 4> after phase 'schedule'}}
module attributes {par.mesh = #par.mesh<dp = 2>, pipe.axis = 0, pipe.stage = 0, pipe.count = 2} {
}
module attributes {par.mesh = #par.mesh<dp = 2>, pipe.axis = 0, pipe.stage = 1, pipe.count = 2} {
}
}

// -----

module {
// expected-error@+1 {{'builtin.module' op is stage 0 and has pipe.axis 0 : i64, but the program has no pipe.axis after phase 'schedule'}}
module attributes {pipe.axis = 0, pipe.stage = 0, pipe.count = 2} {
}
module attributes {pipe.axis = 0, pipe.stage = 1, pipe.count = 2} {
}
}

// -----

module attributes {pipe.axis = 0} {
// expected-error@+1 {{'builtin.module' op is stage 1 of 3, expected stage 0 of 2 after phase 'schedule'}}
module attributes {pipe.axis = 0, pipe.stage = 1, pipe.count = 3} {
}
module attributes {pipe.axis = 0, pipe.stage = 2, pipe.count = 3} {
}
}

// -----

// An option that one stage cannot use is no error, since another one may.
module attributes {pipe.axis = 0} {
module attributes {pipe.axis = 0, pipe.stage = 0, pipe.count = 2, pipe.idle = {"bucket-bytes" = "it sums nothing"}} {
}
module attributes {pipe.axis = 0, pipe.stage = 1, pipe.count = 2, pipe.idle = {"prefetch-bytes" = "it gathers nothing"}} {
}
}

// -----

// expected-error@+1 {{--bucket-bytes: has no effect, because on every pipeline stage it sums nothing; leave it out}}
module attributes {pipe.axis = 0} {
module attributes {pipe.axis = 0, pipe.stage = 0, pipe.count = 2, pipe.idle = {"bucket-bytes" = "it sums nothing"}} {
}
module attributes {pipe.axis = 0, pipe.stage = 1, pipe.count = 2, pipe.idle = {"bucket-bytes" = "it sums nothing"}} {
}
}

// -----

// The numbers of parameters, from which their initial values are drawn, are those of all stages together.
module attributes {pipe.axis = 0} {
module attributes {pipe.axis = 0, pipe.stage = 0, pipe.count = 2, pipe.parameters = [@v, @w]} {
  train.parameter @v : tensor<4xf32>
}
module attributes {pipe.axis = 0, pipe.stage = 1, pipe.count = 2} {
  // expected-error@+1 {{'train.parameter' op @w is not in pipe.parameters of stage 1 after phase 'schedule'}}
  train.parameter @w : tensor<4xf32>
}
}

// -----

module attributes {pipe.axis = 0} {
module attributes {pipe.axis = 0, pipe.stage = 0, pipe.count = 2, pipe.parameters = [@v, @w]} {
  train.parameter @v : tensor<4xf32>
}
// expected-error@+1 {{is stage 1 and has another pipe.parameters than stage 0 after phase 'schedule'}}
module attributes {pipe.axis = 0, pipe.stage = 1, pipe.count = 2, pipe.parameters = [@w]} {
  train.parameter @w : tensor<4xf32>
}
}

// -----

// expected-error@+2 {{is stage 1 and has no pipe.hyper, unlike stage 0 after phase 'schedule'}}
module attributes {pipe.axis = 0} { module attributes {pipe.axis = 0, pipe.stage = 0, pipe.count = 2, pipe.hyper = {beta1 = 0.9}} {}
module attributes {pipe.axis = 0, pipe.stage = 1, pipe.count = 2} {} }

// -----

// A symbol that no stage has would shift the numbers of those after it.
module attributes {pipe.axis = 0} {
// expected-error@+1 {{pipe.parameters lists @u, which no stage has after phase 'schedule'}}
module attributes {pipe.axis = 0, pipe.stage = 0, pipe.count = 2, pipe.parameters = [@u, @v]} {
  train.parameter @v : tensor<4xf32>
}
module attributes {pipe.axis = 0, pipe.stage = 1, pipe.count = 2, pipe.parameters = [@u, @v]} {
}
}

// -----

// The program's table has one offset for all stages.
module attributes {pipe.axis = 0} {
module attributes {pipe.axis = 0, pipe.stage = 0, pipe.count = 2, pipe.parameters = [@v]} {
  // expected-note@+1 {{stage 0's is here}}
  train.parameter @v : tensor<4xf32> {pipe.offset = 0 : i64}
}
module attributes {pipe.axis = 0, pipe.stage = 1, pipe.count = 2, pipe.parameters = [@v]} {
  // expected-error@+1 {{'train.parameter' op is of several stages, which need one pipe.offset for it, after phase 'schedule'}}
  train.parameter @v : tensor<4xf32> {pipe.offset = 64 : i64}
}
}

// -----

module attributes {pipe.axis = 0} {
module attributes {pipe.axis = 0, pipe.stage = 0, pipe.count = 2, pipe.parameters = [@v]} {
  // expected-note@+1 {{stage 0's is here}}
  train.parameter @v : tensor<4xf32>
}
module attributes {pipe.axis = 0, pipe.stage = 1, pipe.count = 2, pipe.parameters = [@v]} {
  // expected-error@+1 {{'train.parameter' op is of several stages, which need one pipe.offset for it, after phase 'schedule'}}
  train.parameter @v : tensor<4xf32> {pipe.offset = 0 : i64}
}
}

// -----

// The stages' orders are one schedule: stage 1, whose passes are joined, takes micro-batches in turn, and stage 0 expects the second one's cotangent first.
// expected-error@+1 {{has stages whose orders do not fit together after phase 'schedule': stage 0, slot 2 (backward of micro-batch 1): receives micro-batch 0's message}}
module attributes {pipe.axis = 0} {
module attributes {pipe.axis = 0, pipe.stage = 0, pipe.count = 2} {
func.func @train_step(%xs: tensor<2x4xf32>) attributes {train.entry_point = #train.entry_point<train_step>} {
  train.accumulate (%x = %xs) : (tensor<2x4xf32>) -> () {
    pipe.send %x over <0 to 1> : tensor<4xf32>
    train.yield
  } backward (%y) {
    %0 = pipe.recv over <1 to 0> {train.backward} : tensor<4xf32>
    train.yield
  } {order = #train.order<2 x (forward 0), 1 x (backward 1), 1 x (backward 0)>}
  return
}
}
module attributes {pipe.axis = 0, pipe.stage = 1, pipe.count = 2} {
func.func @train_step(%xs: tensor<2x4xf32>) attributes {train.entry_point = #train.entry_point<train_step>} {
  train.accumulate (%x = %xs) : (tensor<2x4xf32>) -> () {
    %0 = pipe.recv over <0 to 1> : tensor<4xf32>
    pipe.send %0 over <1 to 0> : tensor<4xf32>
    train.yield
  } {order = #train.order<2 x (forward 0)>}
  return
}
}
}
