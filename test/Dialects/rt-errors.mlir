// RUN: partita-opt %s --split-input-file --verify-diagnostics

// A layer's table and those who use it agree.
// expected-error@+1 {{'rt.layer' op column 'x' has 1 values for 2 rows}}
rt.layer @f of ["h.0", "h.1"] columns ["x"] [array<i64: 0>] pending [] copies [] {
}

// -----

// expected-error@+1 {{'rt.layer' op has two columns 'x'}}
rt.layer @f of ["h.0"] columns ["x", "x"] [array<i64: 0>, array<i64: 1>] pending [] copies [] {
}

// -----

// expected-error@+1 {{'rt.layer' op has 1 columns, values of 0}}
rt.layer @f of ["h.0"] columns ["x"] [] pending [] copies [] {
}

// -----

// expected-error@+1 {{'rt.layer' op column 'x' has neither numbers nor strings}}
rt.layer @f of ["h.0"] columns ["x"] [2 : i64] pending [] copies [] {
}

// -----

// expected-error@+1 {{'rt.layer' op takes buffers, not 'i64'}}
rt.layer @f of ["h.0"] columns [] [] pending [] copies [] {
^bb0(%n: i64):
}

// -----

rt.layer @f of ["h.0"] columns ["x"] [array<i64: 0>] pending [] copies [] {
  // expected-error@+1 {{'rt.arena' op reads column 'y', which the table of @f does not have}}
  %0 = rt.arena 0 [2] {rt.columns = {offset = #rt.column<"y">}} : !rt.buffer<f32>
}

// -----

rt.layer @f of ["h.0"] columns ["x"] [array<i64: 0>] pending [] copies [] {
  // expected-error@+1 {{'rt.arena' op 'shape' cannot be a column}}
  %0 = rt.arena 0 [2] {rt.columns = {shape = #rt.column<"x">}} : !rt.buffer<f32>
}

// -----

rt.layer @f of ["h.0"] columns ["x"] [["a"]] pending [] copies [] {
  // expected-error@+1 {{'rt.arena' op 'offset' and column 'x' are of different types}}
  %0 = rt.arena 0 [2] {rt.columns = {offset = #rt.column<"x">}} : !rt.buffer<f32>
}

// -----

rt.layer @f of ["h.0"] columns ["x"] [["a"]] pending [] copies [] {
  // expected-error@+1 {{'rt.wait' op has no attribute that could be a column}}
  rt.wait "p" {rt.columns = {pending = #rt.column<"x">}}
}

// -----

func.func @g() {
  // expected-error@+1 {{'rt.call' op calls @g, which is not a layer's function}}
  rt.call @g 0 times 1 pending [] copies []
  return
}

// -----

rt.layer @f of ["h.0", "h.1"] columns [] [] pending ["p"] copies [] {
}
func.func @g() {
  // expected-error@+1 {{'rt.call' op takes 2 rows from 1 on of the 2 of @f}}
  rt.call @f 1 times 2 pending ["p"] copies []
  return
}

// -----

rt.layer @f of ["h.0", "h.1"] columns [] [] pending ["p"] copies [] {
}
func.func @g() {
  // expected-error@+1 {{'rt.call' op names 0 collectives and 0 copies, @f has 1 and 0}}
  rt.call @f 0 times 1 pending [] copies []
  return
}

// -----

rt.layer @f of ["h.0", "h.1"] columns [] [] pending [] copies [] {
^bb0(%x: !rt.buffer<f32>):
}
func.func @g() {
  // expected-error@+1 {{'rt.call' op gives other buffers than @f takes}}
  rt.call @f 0 times 1 pending [] copies []
  return
}

// -----

// expected-error@+1 {{rt.target is "tpu"; there are: cpu, cuda}}
module attributes {rt.target = "tpu"} {}

// -----

// expected-error@+1 {{rt.target is 1 : i64; there are: cpu, cuda}}
module attributes {rt.target = 1 : i64} {}

// -----

// expected-error@+1 {{rt.memory_limit is 0 : i64, expected an i64 above 0}}
module attributes {rt.memory_limit = 0 : i64} {}

// -----

// expected-error@+1 {{rt.memory_limit is "1G", expected an i64 above 0}}
module attributes {rt.memory_limit = "1G"} {}

// -----

// expected-error@+1 {{rt.memory_limit is for modules}}
func.func private @f() attributes {rt.memory_limit = 1 : i64}

// -----

// expected-error@+1 {{rt.rows is for a classifier's loss}}
module attributes {rt.rows = 8 : i64} {}

// -----

func.func @f(%x: tensor<2x3xf32>, %w: tensor<4x3xf32>, %labels: tensor<2xi64>) -> tensor<2xf32> {
  // expected-error@+1 {{rt.rows is 8 : i32, expected an i64 above 0}}
  %0 = tx.classifier_loss %x, %w, %labels ignore -100 {rt.rows = 8 : i32} : (tensor<2x3xf32>, tensor<4x3xf32>, tensor<2xi64>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// expected-error@+1 {{rt.padded_rows is for parameters that are matrices}}
train.parameter @b : tensor<4xf32> {rt.padded_rows = 8 : i64}

// -----

// expected-error@+1 {{rt.padded_rows is 3 : i64, expected an i64 of at least the matrix's 4 rows}}
train.parameter @w : tensor<4x2xbf16> {rt.padded_rows = 3 : i64}

// -----

// expected-error@+1 {{rt.program is {inputs = []}, expected a module's #rt.program}}
module attributes {rt.program = {inputs = []}} {}

// -----

// expected-error@+3 {{'all_reduced' is not a kind of collective}}
// expected-error@+2 {{failed to parse Rt_CensusAttr parameter 'kind'}}
// expected-error@+1 {{failed to parse Rt_ProgramAttr parameter 'census'}}
module attributes {rt.program = #rt.program<census = [#rt.census<function = "train_step", kind = all_reduced, communicator = "tp", reason = "loss">]>} {}

// -----

// expected-error@+2 {{'steps' are some of all, and 'exact' says which, or neither is there}}
// expected-error@+1 {{failed to parse Rt_ProgramAttr parameter 'census'}}
module attributes {rt.program = #rt.program<census = [#rt.census<function = "train_step", kind = all_reduce, communicator = "tp", reason = "loss", steps = others>]>} {}

// -----

// expected-error@+1 {{'inputs' lists #rt.input, and "tokens" is none}}
module attributes {rt.program = #rt.program<inputs = ["tokens"]>} {}

// -----

// expected-error@+2 {{input 'ids' has role 'tokens', which is not one of ids, labels, targets, positions, ones, zeros, shifted, data}}
// expected-error@+1 {{failed to parse Rt_ProgramAttr parameter 'inputs'}}
module attributes {rt.program = #rt.program<inputs = [#rt.input<name = "ids", role = "tokens", type = tensor<2xi64>>]>} {}

// -----

// expected-error@+2 {{'type' is 'tensor<?xi64>'; its shape must be static}}
// expected-error@+1 {{failed to parse Rt_ProgramAttr parameter 'inputs'}}
module attributes {rt.program = #rt.program<inputs = [#rt.input<name = "ids", role = "ids", type = tensor<?xi64>>]>} {}

// -----

// expected-error@+2 {{'micro_batches' is 0, and at least 1}}
// expected-error@+1 {{failed to parse Rt_ProgramAttr parameter 'collectives'}}
module attributes {rt.program = #rt.program<collectives = [#rt.collective<function = "f", kind = all_reduce, axis = "tp", communicator = "tp", micro_batches = 0, place = 1>]>} {}

// -----

// expected-error@+2 {{'role' is "reduce", which is no role of #par.cause}}
// expected-error@+1 {{failed to parse Rt_ProgramAttr parameter 'collectives'}}
module attributes {rt.program = #rt.program<collectives = [#rt.collective<function = "f", kind = all_reduce, axis = "tp", communicator = "tp", place = 1, role = "reduce">]>} {}

// -----

func.func @work() {
  // expected-error@+2 {{expected ::partita::rt::Work to be one of: forward, backward, update}}
  // expected-error@+2 {{failed to parse Rt_WorkAttr parameter 'value'}}
  rt.work sideward
  return
}

// -----

// expected-error@+1 {{'hyper' has numbers, and "beta1" is "0.9"}}
module attributes {rt.program = #rt.program<hyper = {beta1 = "0.9"}>} {}

// -----

// expected-error@+1 {{'communicators' has two rows 'dp'}}
module attributes {par.mesh = #par.mesh<dp = 2, tp = 2>, rt.program = #rt.program<census = [#rt.census<function = "f", kind = all_reduce, communicator = "dp", reason = "loss">], communicators = [#rt.communicator<name = "dp", axes = ["dp"]>, #rt.communicator<name = "dp", axes = ["tp"]>]>} {}

// -----

// expected-error@+1 {{communicators 'dp' and 'again' are one: they have the same ranks and purpose}}
module attributes {par.mesh = #par.mesh<dp = 2, tp = 2>, rt.program = #rt.program<census = [#rt.census<function = "f", kind = all_reduce, communicator = "dp", reason = "loss">, #rt.census<function = "f", kind = all_reduce, communicator = "again", reason = "loss">], communicators = [#rt.communicator<name = "dp", axes = ["dp"]>, #rt.communicator<name = "again", axes = ["dp"], streams = [#par.stream<"dp">]>]>} {}

// -----

// expected-error@+1 {{'communicators' has a row 'tp', and no census row names it}}
module attributes {par.mesh = #par.mesh<dp = 2, tp = 2>, rt.program = #rt.program<census = [#rt.census<function = "f", kind = all_reduce, communicator = "dp", reason = "loss">], communicators = [#rt.communicator<name = "dp", axes = ["dp"]>, #rt.communicator<name = "tp", axes = ["tp"]>]>} {}

// -----

// expected-error@+1 {{'communicators' has no row 'tp', which census row 'loss' names}}
module attributes {par.mesh = #par.mesh<dp = 2, tp = 2>, rt.program = #rt.program<census = [#rt.census<function = "f", kind = all_reduce, communicator = "dp", reason = "loss">, #rt.census<function = "f", kind = all_reduce, communicator = "tp", reason = "loss">], communicators = [#rt.communicator<name = "dp", axes = ["dp"]>]>} {}

// -----

// expected-error@+2 {{communicator 'dp' is over "dp" twice}}
// expected-error@+1 {{failed to parse Rt_ProgramAttr parameter 'communicators'}}
module attributes {par.mesh = #par.mesh<dp = 2, tp = 2>, rt.program = #rt.program<census = [#rt.census<function = "f", kind = all_reduce, communicator = "dp", reason = "loss">], communicators = [#rt.communicator<name = "dp", axes = ["dp", "dp"]>]>} {}

// -----

// expected-error@+2 {{communicator 'pp' joins stages in ascending order, not array<i64: 1, 0>}}
// expected-error@+1 {{failed to parse Rt_ProgramAttr parameter 'communicators'}}
module attributes {par.mesh = #par.mesh<dp = 2, tp = 2>, rt.program = #rt.program<census = [#rt.census<function = "f", kind = all_reduce, communicator = "pp", reason = "loss">], communicators = [#rt.communicator<name = "pp", axes = ["pp"], stages = [1, 0]>]>} {}

// -----

// expected-error@+1 {{communicator 'ep' is over axis 'ep', which the mesh #par.mesh<dp = 2, tp = 2> does not have}}
module attributes {par.mesh = #par.mesh<dp = 2, tp = 2>, rt.program = #rt.program<census = [#rt.census<function = "f", kind = all_reduce, communicator = "ep", reason = "loss">], communicators = [#rt.communicator<name = "ep", axes = ["ep"]>]>} {}

// -----

// expected-error@+1 {{communicator 'stages 0 and 1' joins pipeline stages, and is of no pipeline}}
module attributes {par.mesh = #par.mesh<dp = 2, tp = 2>, rt.program = #rt.program<census = [#rt.census<function = "f", kind = all_reduce, communicator = "stages 0 and 1", reason = "loss">], communicators = [#rt.communicator<name = "stages 0 and 1", axes = ["dp"], stages = [0, 1]>]>} {}

// -----

// expected-error@+1 {{'channels' has a row 'onward', and no message names it}}
module attributes {par.mesh = #par.mesh<dp = 2, tp = 2>, rt.program = #rt.program<channels = [#rt.channel<name = "onward", axis = "pp", source = 0, target = 1>]>} {}

// -----

// expected-error@+2 {{channel 'onward' goes from one place of its axis to another, not from 1 to 1}}
// expected-error@+1 {{failed to parse Rt_ProgramAttr parameter 'channels'}}
module attributes {par.mesh = #par.mesh<dp = 2, tp = 2>, rt.program = #rt.program<channels = [#rt.channel<name = "onward", axis = "pp", source = 1, target = 1>]>} {}

// -----

// expected-error@+1 {{channel 'onward' is along axis 'pp'; channels join pipeline stages}}
module attributes {par.mesh = #par.mesh<dp = 2, tp = 2>, rt.program = #rt.program<channels = [#rt.channel<name = "onward", axis = "pp", source = 0, target = 1>], messages = [#rt.message<function = "f", channel = "onward", reason = "layer 1">]>} {}

// -----

module {
  // expected-error@+1 {{channel 'onward' joins stages 1 and 2, and this is stage 0 of 3}}
  module attributes {par.mesh = #par.mesh<dp = 2>, pipe.stage = 0 : i64, pipe.count = 3 : i64, rt.program = #rt.program<
    channels = [#rt.channel<name = "onward", axis = "pp", source = 1, target = 2>], messages = [#rt.message<function = "f", channel = "onward", reason = "layer 1">]>} {}
}

// -----

module {
  // expected-error@+1 {{communicator 'stages 1 and 2' joins stages 1, 2, and this is stage 0 of 3}}
  module attributes {par.mesh = #par.mesh<dp = 2>, pipe.stage = 0 : i64, pipe.count = 3 : i64, rt.program = #rt.program<
    census = [#rt.census<function = "f", kind = all_reduce, communicator = "stages 1 and 2", reason = "loss">], communicators = [#rt.communicator<name = "stages 1 and 2", axes = ["pp"], stages = [1, 2]>]>} {}
}

// -----

module attributes {par.mesh = #par.mesh<dp = 2>, rt.program = #rt.program<census = [#rt.census<function = "f", kind = all_reduce, communicator = "dp", reason = "loss">], communicators = [#rt.communicator<name = "dp", axes = ["dp"]>]>} {
  func.func @f() {
    %x = rt.arena 0 [4] : !rt.buffer<f32>
    // expected-error@+1 {{is over "tp", which is none of the program's communicators}}
    rt.all_reduce "" %x [4] over "tp" because "loss" : !rt.buffer<f32>
    return
  }
}

// -----

module attributes {par.mesh = #par.mesh<dp = 2>, rt.program = #rt.program<>} {
  func.func @f() {
    %x = rt.arena 0 [4] : !rt.buffer<f32>
    // expected-error@+1 {{is over "onward", which is none of the program's channels}}
    rt.send %x 4 over "onward" because "layer 1" : !rt.buffer<f32>
    return
  }
}

// -----

module attributes {par.mesh = #par.mesh<dp = 2, tp = 2>, rt.program = #rt.program<census = [#rt.census<function = "f", kind = all_reduce, communicator = "dp", reason = "momentum">], communicators = [#rt.communicator<name = "dp", axes = ["dp"]>]>} {
  func.func @f() {
    %x = rt.arena 0 [4] : !rt.buffer<f32>
    // expected-error@+1 {{has a value of 0 elements along axis 1, expected a size and an axis, or 0 and -1}}
    rt.one_bit_all_reduce %x, %x, %x [4] of [0] along [1] at %x exact until 5 with %x over "dp" because "momentum" : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
    return
  }
}

// -----

module attributes {par.mesh = #par.mesh<dp = 2, tp = 2>, rt.program = #rt.program<census = [#rt.census<function = "f", kind = all_reduce, communicator = "dp", reason = "momentum">], communicators = [#rt.communicator<name = "dp", axes = ["dp"]>]>} {
  func.func @f() {
    %x = rt.arena 0 [4] : !rt.buffer<f32>
    // expected-error@+1 {{has a value of 7 elements along axis -1, expected a size and an axis, or 0 and -1}}
    rt.one_bit_all_reduce %x, %x, %x [4] of [7] along [-1] at %x exact until 5 with %x over "dp" because "momentum" : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
    return
  }
}

// -----

module attributes {par.mesh = #par.mesh<dp = 2>, rt.program = #rt.program<census = [#rt.census<function = "f", kind = all_reduce, communicator = "dp", reason = "momentum">], communicators = [#rt.communicator<name = "dp", axes = ["dp"]>]>} {
  func.func @f() {
    %x = rt.arena 0 [4] : !rt.buffer<f32>
    // expected-error@+1 {{has 1 values, 0 full sizes and 1 axes, expected one of each for a value}}
    rt.one_bit_all_reduce %x, %x, %x [4] of [] along [-1] at %x exact until 5 with %x over "dp" because "momentum" : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
    return
  }
}

// -----

// expected-error@+1 {{has 2 values and 1 types}}
rt.update_kernel @k ["p", "g"] [f32] scalars [] prepares [] factors [] computes []

// -----

// expected-error@+1 {{has 2 values, expected a value, the same in 16 bits and a gradient}}
rt.update_kernel @k ["p", "g"] [f32, f32] rounds nearest scalars [] prepares [] factors [] computes []

// -----

// expected-error@+1 {{is conditional without a scalar "apply"}}
rt.update_kernel @k ["p", "g"] [f32, f32] conditional scalars ["rate"] prepares [] factors [] computes []

// -----

// expected-error@+1 {{rounds stochastically, expected the scalars "rounding_key" and, last, "rounding_first"}}
rt.update_kernel @k ["p", "w", "g"] [f32, bf16, f32] rounds stochastic scalars ["rounding_first", "rounding_key"] prepares [] factors [] computes []

// -----

// expected-error@+1 {{has squares: it writes nothing that it could round or leave}}
rt.update_kernel @k ["p", "g"] [f32, f32] conditional scalars ["apply"] prepares [] factors [] computes [] squares ["p_i"]

// -----

// expected-error@+1 {{has largest values without squares}}
rt.update_kernel @k ["p", "g"] [f32, f32] scalars [] prepares [] factors [] computes [] largest ["p_i"]

// -----

func.func @f() {
  %p = rt.arena 0 [4] : <f32>
  // expected-error@+1 {{calls @absent, which is not an update's kernel}}
  rt.update @absent(%p, %p) 4 with [] at () tile 0 on_host false : !rt.buffer<f32>, !rt.buffer<f32>
  return
}

// -----

rt.update_kernel @k ["p", "w", "g"] [f32, bf16, f32] rounds nearest scalars [] prepares [] factors [] computes []
func.func @f() {
  %p = rt.arena 0 [4] : <f32>
  %w = rt.arena 64 [4] : <bf16>
  // expected-error@+1 {{and @k do not round alike}}
  rt.update @k(%p, %w, %p) 4 with [] at () tile 0 on_host false : !rt.buffer<f32>, !rt.buffer<bf16>, !rt.buffer<f32>
  return
}

// -----

rt.update_kernel @k ["p", "g"] [f32, bf16] scalars [] prepares [] factors [] computes [] squares ["p_i"]
func.func @f() {
  %s = rt.arena 0 [1] : <f64>
  %p = rt.arena 64 [4] : <f32>
  // expected-error@+1 {{calls @k on values of the types ('f64', 'f32', 'f32'); it takes ('f64', 'f32', 'bf16')}}
  rt.update @k(%s, %p, %p) 4 with [] at () tile 0 on_host false : !rt.buffer<f64>, !rt.buffer<f32>, !rt.buffer<f32>
  return
}

// -----

rt.update_kernel @k ["p", "g"] [f32, f32] scalars ["rate"] prepares [] factors [] computes []
func.func @f() {
  %p = rt.arena 64 [4] : <f32>
  // expected-error@+1 {{has 0 scalars, @k takes 1}}
  rt.update @k(%p, %p) 4 with [] at () tile 0 on_host false : !rt.buffer<f32>, !rt.buffer<f32>
  return
}

// -----

// expected-error@+1 {{has 9 loops, expected 1 to 8}}
rt.kernel @k loops 9 outputs ["y"] [f32] inputs [] [] steps [1] locals [] computes ["1.0f"]

// -----

// expected-error@+1 {{has 1 outputs, 1 types and 2 expressions, expected one of each for an output}}
rt.kernel @k loops 1 outputs ["y"] [f32] inputs [] [] steps [1] locals [] computes ["1.0f", "2.0f"]

// -----

// expected-error@+1 {{has 1 steps, expected one for each of 2 outputs and inputs}}
rt.kernel @k loops 1 outputs ["y"] [f32] inputs ["x"] [f32] steps [1] locals [] computes ["$x"]
