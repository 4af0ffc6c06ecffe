// RUN: partita-opt %s --split-input-file --verify-diagnostics

// What one phase records for a later one is a typed row (dialects/Interfaces/Tables.td), checked wherever text is read.

// expected-error@+1 {{tensor 'a' is slice array<i64: 0, 4> of a parameter, expected a dimension, a begin and a size}}
train.parameter @w : tensor<4xf32> {train.tensors = [#train.stored<name = "a", slice = [0, 4]>]}

// -----

// expected-error@+1 {{tensor 'a' was made of parameters of array<i64: 2, 1> dimensions, expected a least and a largest number}}
train.parameter @w : tensor<4xf32> {train.tensors = [#train.stored<name = "a", dimensions = [2, 1]>]}

// -----

// expected-error@+1 {{"train.tensors" is [{name = "a"}], expected a list of #train.stored}}
train.parameter @w : tensor<4xf32> {train.tensors = [{name = "a"}]}

// -----

// expected-error@+2 {{a flag is true or false}}
// expected-error@+1 {{failed to parse Train_StoredAttr parameter 'transposed'}}
train.parameter @w : tensor<4xf32> {train.tensors = [#train.stored<name = "a", transposed = 1>]}

// -----

// expected-error@+1 {{"train.notes" is [], expected a list of #train.note}}
module attributes {train.notes = []} {}

// -----

// expected-error@+1 {{a note is about [4], expected names of tensors}}
module attributes {train.notes = [#train.note<text = "guessed", tensors = [4]>]} {}

// -----

// expected-error@+1 {{file 'm.onnx' has -1 bytes}}
module attributes {train.files = [#train.file<name = "m.onnx", bytes = -1, fingerprint = 0>]} {}

// -----

// expected-error@+1 {{layer 0 has -1.000000e+00 : f64 FLOPs, expected an f64 from 0}}
module attributes {train.work = [#train.work<place = 0, matmuls = -1.0, elementwise = 0.0, backward = 0.0, parameters = 0>]} {}

// -----

// expected-error@+1 {{layer 0 has 0x7FF0000000000000 : f64 FLOPs, expected an f64 from 0}}
module attributes {train.work = [#train.work<place = 0, matmuls = 0x7FF0000000000000 : f64, elementwise = 0.0, backward = 0.0, parameters = 0>]} {}

// -----

// expected-error@+1 {{layer 0 has -4 elements of parameters}}
module attributes {train.work = [#train.work<place = 0, matmuls = 0.0, elementwise = 0.0, backward = 0.0, parameters = -4>]} {}

// -----

// expected-error@+1 {{work of layer -4, expected a layer from 0 to 4194303, or -1, -2, -3 for what is before, after, once per step}}
module attributes {train.work = [#train.work<place = -4, matmuls = 0.0, elementwise = 0.0, backward = 0.0, parameters = 0>]} {}

// -----

// expected-error@+1 {{"train.work" has a row for layer 4000000 and none for layer 1}}
module attributes {train.work = [#train.work<place = 0, matmuls = 0.0, elementwise = 0.0, backward = 0.0, parameters = 0>, #train.work<place = 4000000, matmuls = 0.0, elementwise = 0.0, backward = 0.0, parameters = 0>]} {}

// -----

func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{train.layer is #train.layer<4 of 4>, expected a #train.layer with a number below that of layers}}
  %0 = tx.exp %x {train.layer = #train.layer<4 of 4>} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error@+1 {{"train.work" has two rows for layer 0}}
module attributes {train.work = [#train.work<place = 0, matmuls = 0.0, elementwise = 0.0, backward = 0.0, parameters = 0>, #train.work<place = 0, matmuls = 0.0, elementwise = 0.0, backward = 0.0, parameters = 0>]} {}

// -----

// expected-error@+1 {{"train.spans" is of 2 layers, and train.work has 1}}
module attributes {train.work = [#train.work<place = 0, matmuls = 0.0, elementwise = 0.0, backward = 0.0, parameters = 0>], train.spans = [#train.span<first = 0, last = 1, costs = [1, 2, 3]>]} {}

// -----

// expected-error@+1 {{"train.spans" has no train.work beside it}}
module attributes {train.spans = [#train.span<first = 0, last = 1, costs = [1, 2, 3]>]} {}

// -----

// expected-error@+1 {{layers 0 to 1 cost [-4, 0, 0], expected 0 to 72057594037927935 for each kind of pass}}
module attributes {train.spans = [#train.span<first = 0, last = 1, costs = [-4, 0, 0]>]} {}

// -----

// expected-error@+1 {{layers 0 to 0 cost [9223372036854775807, 1, 0], expected 0 to 72057594037927935 for each kind of pass}}
module attributes {train.spans = [#train.span<first = 0, last = 0, costs = [9223372036854775807, 1, 0]>]} {}

// -----

// expected-error@+1 {{train.schedule belongs on a module of stages: with pipe.stages, or after the cut}}
module attributes {train.schedule = #train.schedule<name = "1f1b", orders = [#train.order<1 x (forward 0, backward 0)>, #train.order<1 x (forward 0, backward 0)>]>} {}

// -----

// expected-error@+1 {{train.schedule is 4 : i64, expected a #train.schedule}}
module attributes {pipe.stages = 2, train.schedule = 4} {}

// -----

// expected-error@+1 {{micro-batch -1 of a slot, expected 0 to 4194303}}
module attributes {test = #train.order<1 x (forward -1)>} {}

// -----

// expected-error@+1 {{chunk 4194304 of a slot, expected 0 to 4194303}}
module attributes {test = #train.order<1 x (forward.4194304 0)>} {}

// -----

// expected-error@+1 {{a span of layers 1 to 0, expected one layer or two}}
module attributes {train.spans = [#train.span<first = 1, last = 0, costs = [1, 2, 3]>]} {}

// -----

// expected-error@+1 {{layers 0 to 1 cost [1, 2], expected 0 to 72057594037927935 for each kind of pass}}
module attributes {train.spans = [#train.span<first = 0, last = 1, costs = [1, 2]>]} {}

// -----

// expected-error@+1 {{pass backward has no cost, or several}}
module attributes {train.costs = #train.costs<order = <2 x (forward 0, backward 0)>, passes = [#train.pass_cost<pass = <forward>, cost = 4>]>} {}

// -----

// expected-error@+2 {{failed to parse Train_CostsAttr parameter 'passes' which is to be a `::mlir::ArrayAttr`}}
// expected-error@+1 {{pass forward costs 4, 5 of it beside 8 bytes}}
module attributes {train.costs = #train.costs<order = <2 x (forward 0)>, passes = [#train.pass_cost<pass = <forward>, cost = 4, reduced = 8, beside = 5>]>} {}

// -----

// expected-error@+1 {{stage 1 needs 8 bytes, and the limit of 8 decided nothing}}
module attributes {pipe.limited = #pipe.limited<limit = 8, cuts = [0, 1], stage = 1, bytes = 8, tried = 0>} {}

// -----

// expected-error@+1 {{the ledger of 'forward' has a peak of 8 bytes in 4}}
module attributes {rt.ledger = [#rt.ledger<function = "forward", bytes = 4, peak = 8, ops = 1, at = 0, place = 0>]} {}

// -----

// expected-error@+1 {{buffer 'x' lives to op 3, and 'forward' has 3}}
module attributes {rt.ledger = [#rt.ledger<function = "forward", bytes = 8, peak = 8, ops = 3, at = 0, place = 0, buffers = [#rt.buffer<name = "x", kind = activation, bytes = 8, offset = 0, begin = 0, end = 3, place = 0>]>]} {}

// -----

// expected-error@+1 {{rt.ledger is {}, expected a list of #rt.ledger}}
module attributes {rt.ledger = {}} {}

// -----

// expected-error@+1 {{work of layer 9223372036854775807, expected a layer from 0 to 4194303, or -1, -2, -3 for what is before, after, once per step}}
module attributes {train.work = [#train.work<place = 9223372036854775807, matmuls = 0.0, elementwise = 0.0, backward = 0.0, parameters = 0>]} {}

// -----

// expected-error@+1 {{"train.work" has more elements of parameters than 9223372036854775807}}
module attributes {train.work = [#train.work<place = 0, matmuls = 0.0, elementwise = 0.0, backward = 0.0, parameters = 9223372036854775807>, #train.work<place = 1, matmuls = 0.0, elementwise = 0.0, backward = 0.0, parameters = 1>]} {}

// -----

// expected-error@+1 {{layer 9223372036854775807 of 9223372036854775807, expected -3 to 4194303 of 0 to 4194304}}
module attributes {test = #train.layer<9223372036854775807 of 9223372036854775807>} {}

// -----

// expected-error@+1 {{a span of layers 9223372036854775807 to 9223372036854775807, expected one layer or two, below 4194304}}
module attributes {test = #train.span<first = 9223372036854775807, last = 9223372036854775807, costs = [1, 2, 3]>} {}

// -----

// expected-error@+1 {{"train.work" is 3 : i64, expected a list of #train.work}}
module attributes {train.work = 3 : i64, train.spans = [#train.span<first = 0, last = 0, costs = [1, 2, 3]>]} {}

// -----

// expected-error@+1 {{"train.spans" has two spans of layers 0 to 1}}
module attributes {train.work = [#train.work<place = 0, matmuls = 0.0, elementwise = 0.0, backward = 0.0, parameters = 0>, #train.work<place = 1, matmuls = 0.0, elementwise = 0.0, backward = 0.0, parameters = 0>, #train.work<place = 2, matmuls = 0.0, elementwise = 0.0, backward = 0.0, parameters = 0>], train.spans = [#train.span<first = 0, last = 0, costs = [1, 2, 3]>, #train.span<first = 0, last = 1, costs = [1, 2, 3]>, #train.span<first = 1, last = 1, costs = [1, 2, 3]>, #train.span<first = 1, last = 2, costs = [1, 2, 3]>, #train.span<first = 2, last = 2, costs = [1, 2, 3]>, #train.span<first = 0, last = 1, costs = [1, 2, 3]>]} {}

// -----

// expected-error@+1 {{"train.spans" has no span of layer 1}}
module attributes {train.work = [#train.work<place = 0, matmuls = 0.0, elementwise = 0.0, backward = 0.0, parameters = 0>, #train.work<place = 1, matmuls = 0.0, elementwise = 0.0, backward = 0.0, parameters = 0>, #train.work<place = 2, matmuls = 0.0, elementwise = 0.0, backward = 0.0, parameters = 0>], train.spans = [#train.span<first = 0, last = 0, costs = [1, 2, 3]>, #train.span<first = 0, last = 1, costs = [1, 2, 3]>, #train.span<first = 1, last = 2, costs = [1, 2, 3]>, #train.span<first = 2, last = 2, costs = [1, 2, 3]>]} {}

// -----

// expected-error@+1 {{"train.spans" has no span of layers 1 to 2}}
module attributes {train.work = [#train.work<place = 0, matmuls = 0.0, elementwise = 0.0, backward = 0.0, parameters = 0>, #train.work<place = 1, matmuls = 0.0, elementwise = 0.0, backward = 0.0, parameters = 0>, #train.work<place = 2, matmuls = 0.0, elementwise = 0.0, backward = 0.0, parameters = 0>], train.spans = [#train.span<first = 0, last = 0, costs = [1, 2, 3]>, #train.span<first = 0, last = 1, costs = [1, 2, 3]>, #train.span<first = 1, last = 1, costs = [1, 2, 3]>, #train.span<first = 2, last = 2, costs = [1, 2, 3]>]} {}

// -----

// expected-error@+1 {{"train.spans" has no span of layers 0 to 1 with splits}}
module attributes {train.work = [#train.work<place = 0, matmuls = 0.0, elementwise = 0.0, backward = 0.0, parameters = 0>, #train.work<place = 1, matmuls = 0.0, elementwise = 0.0, backward = 0.0, parameters = 0>, #train.work<place = 2, matmuls = 0.0, elementwise = 0.0, backward = 0.0, parameters = 0>], train.spans = [#train.span<first = 0, last = 0, costs = [1, 2, 3]>, #train.span<first = 0, last = 1, costs = [1, 2, 3]>, #train.span<first = 1, last = 1, costs = [1, 2, 3]>, #train.span<first = 1, last = 2, costs = [1, 2, 3]>, #train.span<first = 2, last = 2, costs = [1, 2, 3]>, #train.span<first = 0, last = 0, costs = [1, 2, 3], splits = true>, #train.span<first = 1, last = 1, costs = [1, 2, 3], splits = true>, #train.span<first = 1, last = 2, costs = [1, 2, 3], splits = true>, #train.span<first = 2, last = 2, costs = [1, 2, 3], splits = true>]} {}

// -----

// expected-error@+1 {{"train.spans" has no span of layer 0}}
module attributes {train.work = [#train.work<place = 0, matmuls = 0.0, elementwise = 0.0, backward = 0.0, parameters = 0>, #train.work<place = 1, matmuls = 0.0, elementwise = 0.0, backward = 0.0, parameters = 0>, #train.work<place = 2, matmuls = 0.0, elementwise = 0.0, backward = 0.0, parameters = 0>], train.spans = [#train.span<first = 0, last = 0, costs = [1, 2, 3], splits = true>, #train.span<first = 0, last = 1, costs = [1, 2, 3], splits = true>, #train.span<first = 1, last = 1, costs = [1, 2, 3], splits = true>, #train.span<first = 1, last = 2, costs = [1, 2, 3], splits = true>, #train.span<first = 2, last = 2, costs = [1, 2, 3], splits = true>]} {}

// -----

// Two layers have no span: each is a stage.
module attributes {train.work = [#train.work<place = 0, matmuls = 0.0, elementwise = 0.0, backward = 0.0, parameters = 0>, #train.work<place = 1, matmuls = 0.0, elementwise = 0.0, backward = 0.0, parameters = 0>], train.spans = [#train.span<first = 0, last = 0, costs = [1, 2, 3]>, #train.span<first = 1, last = 1, costs = [1, 2, 3]>]} {}

// -----

// expected-error@+1 {{the ledger of 'forward' has 9223372036854775807 ops, expected 0 to 16777216}}
module attributes {rt.ledger = [#rt.ledger<function = "forward", bytes = 8, peak = 8, ops = 9223372036854775807, at = 0, place = 0>]} {}
