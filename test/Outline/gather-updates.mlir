// RUN: partita-opt %s --gather-updates --split-input-file --mlir-print-local-scope | FileCheck %s

// Two updates with one kernel, with and without weight decay: rows of a table, in the order of the parameters, and one call. The sum of squares reads
// the table's gradients, the report of an overflow its parameters.
// CHECK: rt.tensors @updates in ["persistent", "persistent", "arena"] [f32, f32, f32]
// CHECK-SAME: [#rt.tensor<"w0" at[0, 64, 0] elements 8 parameter 0>, #rt.tensor<"w1" at[128, 192, 64] elements 4 step 1 parameter 1>]
// CHECK-LABEL: func.func @train_step
// CHECK: rt.square_sum_all %[[SQUARES:.*]] of @updates 2 0 2
// CHECK-NEXT: rt.first_nonfinite_all %[[SQUARES]] for @updates 0 2
// CHECK-NOT: rt.persistent
// CHECK: rt.expose_gradients @updates 2 0 2 flat []
// CHECK-NEXT: rt.update_all @momentum over @updates 0 2 with {{\[}}["*{}", "0.1"], ["*{}", "0.0"]] at(%[[RATE:.*]], %[[RATE]])
// CHECK-NOT: rt.update @
rt.update_kernel @momentum ["p", "m", "g"] [f32, f32, f32] scalars ["rate", "decay"] prepares [] factors ["rate", "decay"] computes ["p[i] = g[i];"]
func.func @train_step() attributes {train.entry_point = #train.entry_point<train_step>} {
  %g0 = rt.arena 0 [8] : <f32>
  %g1 = rt.arena 64 [4] : <f32>
  %squares = rt.arena 128 [2] : <f64>
  rt.square_sum %squares of %g0, %g1 [8, 4] : !rt.buffer<f64>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.first_nonfinite %squares [2] for [0, 1] : !rt.buffer<f64>
  %rate = rt.control "learningRate" : <f32>
  rt.comment "update"
  rt.expose_gradient %g0 {flatOver = array<i64>, index = 0 : i64} : !rt.buffer<f32>
  %w0 = rt.persistent 0 [8] : <f32> loc("w0")
  %m0 = rt.persistent 64 [8] : <f32>
  rt.update @momentum(%w0, %m0, %g0) 8 with ["*{}", "0.1"] at (%rate) tile 0 on_host false : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32> at !rt.buffer<f32>
  rt.expose_gradient %g1 {flatOver = array<i64>, index = 1 : i64} : !rt.buffer<f32>
  %w1 = rt.persistent 128 [4] : <f32> loc("w1")
  %m1 = rt.persistent 192 [4] : <f32>
  rt.update @momentum(%w1, %m1, %g1) 4 with ["*{}", "0.0"] at (%rate) tile 0 on_host false : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32> at !rt.buffer<f32>
  return
}

// -----

// What waits for another collective is another call, of other rows of the table. One update alone stays as it is. Arrays of a sum that are not
// the table's gradients in order have a table of their own.
// CHECK: rt.tensors @updates in ["persistent", "arena"] [f32, f32] [#rt.tensor<"" at[64, 64] elements 4>, #rt.tensor<"" at[0, 0] elements 4>, #rt.tensor<"" at[128, 128] elements 4>, #rt.tensor<"" at[192, 192] elements 4>]
// CHECK: rt.tensors @gradients in ["arena"] [f32] [#rt.tensor<"" at[128] elements 4>, #rt.tensor<"" at[0] elements 4>]
// CHECK-LABEL: func.func @train_step
// CHECK: rt.square_sum_all %{{.*}} of @gradients 0 0 2
// CHECK-NOT: rt.first_nonfinite_all
// CHECK: rt.first_nonfinite %{{.*}} [1, 1] for [1, 0]
// CHECK: rt.update_all @sgd over @updates 0 2
// CHECK: rt.wait "p"
// CHECK: rt.update_all @sgd over @updates 2 2
// CHECK: rt.wait "q"
// CHECK-NOT: update_all
// CHECK: rt.update @sgd
// CHECK-NOT: update_all
rt.update_kernel @sgd ["p", "g"] [f32, f32] scalars ["rate"] prepares [] factors ["rate"] computes ["p[i] = g[i];"]
func.func @train_step() attributes {train.entry_point = #train.entry_point<train_step>} {
  %g0 = rt.arena 0 [4] : <f32>
  %g1 = rt.arena 64 [4] : <f32>
  %g2 = rt.arena 128 [4] : <f32>
  %g3 = rt.arena 192 [4] : <f32>
  %w0 = rt.persistent 0 [4] : <f32>
  %w1 = rt.persistent 64 [4] : <f32>
  %w2 = rt.persistent 128 [4] : <f32>
  %w3 = rt.persistent 192 [4] : <f32>
  %w4 = rt.persistent 256 [4] : <f32>
  %one = rt.arena 256 [1] : <f64>
  %squares = rt.arena 320 [2] : <f64>
  rt.square_sum %squares of %g2, %g0 [4, 4] : !rt.buffer<f64>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.first_nonfinite %squares, %one [1, 1] for [1, 0] : !rt.buffer<f64>, !rt.buffer<f64>
  rt.update @sgd(%w1, %g1) 4 with ["0.1"] at () tile 0 on_host false : !rt.buffer<f32>, !rt.buffer<f32>
  rt.update @sgd(%w0, %g0) 4 with ["0.1"] at () tile 0 on_host false : !rt.buffer<f32>, !rt.buffer<f32>
  rt.wait "p"
  rt.update @sgd(%w2, %g2) 4 with ["0.1"] at () tile 0 on_host false : !rt.buffer<f32>, !rt.buffer<f32>
  rt.update @sgd(%w3, %g3) 4 with ["0.1"] at () tile 0 on_host false : !rt.buffer<f32>, !rt.buffer<f32>
  rt.wait "q"
  rt.update @sgd(%w4, %g3) 4 with ["0.1"] at () tile 0 on_host false : !rt.buffer<f32>, !rt.buffer<f32>
  return
}

// -----

// The third update writes where the second one's gradient was: the two before are a call, and it begins another one. Who updates on the host has
// its own.
// CHECK-LABEL: func.func @train_step
// CHECK: rt.update_all @sgd over @updates 0 2
// CHECK: rt.update_all @sgd over @updates 2 2
// CHECK: rt.update @sgd
// CHECK-SAME: tile 4
// CHECK-NOT: update_all
rt.update_kernel @sgd ["p", "g"] [f32, f32] scalars ["rate"] prepares [] factors ["rate"] computes ["p[i] = g[i];"]
func.func @train_step() attributes {train.entry_point = #train.entry_point<train_step>} {
  %g0 = rt.arena 0 [4] : <f32>
  %g1 = rt.arena 64 [4] : <f32>
  %g2 = rt.arena 128 [4] : <f32>
  %w0 = rt.arena 192 [4] : <f32>
  %w1 = rt.arena 256 [4] : <f32>
  %w2 = rt.arena 72 [4] : <f32>
  %w3 = rt.arena 320 [4] : <f32>
  %staging = rt.pinned 0 [8] : <f32>
  rt.update @sgd(%w0, %g0) 4 with ["0.1"] at () tile 0 on_host false : !rt.buffer<f32>, !rt.buffer<f32>
  rt.update @sgd(%w1, %g1) 4 with ["0.1"] at () tile 0 on_host false : !rt.buffer<f32>, !rt.buffer<f32>
  rt.update @sgd(%w2, %g2) 4 with ["0.1"] at () tile 0 on_host false : !rt.buffer<f32>, !rt.buffer<f32>
  rt.update @sgd(%w3, %g2) 4 with ["0.1"] at () tile 0 on_host false : !rt.buffer<f32>, !rt.buffer<f32>
  rt.update @sgd(%w3, %g2) 4 with ["0.1"] at () tile 4 staging %staging on_host true : !rt.buffer<f32>, !rt.buffer<f32> staging !rt.buffer<f32>
  return
}

// -----

// No call has more than 96 scalars: of four lists of 33 the first two.
// CHECK-LABEL: func.func @train_step
// CHECK: rt.update_all @many over @updates 0 2
// CHECK: rt.update_all @many over @updates 2 2
rt.update_kernel @many ["p", "g"] [f32, f32] scalars ["a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a"] prepares [] factors [] computes ["p[i] = g[i];"]
func.func @train_step() attributes {train.entry_point = #train.entry_point<train_step>} {
  %g = rt.arena 0 [4] : <f32>
  %w0 = rt.arena 64 [4] : <f32>
  %w1 = rt.arena 128 [4] : <f32>
  %w2 = rt.arena 192 [4] : <f32>
  %w3 = rt.arena 256 [4] : <f32>
  rt.update @many(%w0, %g) 4 with ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17", "18", "19", "20", "21", "22", "23", "24", "25", "26", "27", "28", "29", "30", "31", "32"] at () tile 0 on_host false : !rt.buffer<f32>, !rt.buffer<f32>
  rt.update @many(%w1, %g) 4 with ["1", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17", "18", "19", "20", "21", "22", "23", "24", "25", "26", "27", "28", "29", "30", "31", "32"] at () tile 0 on_host false : !rt.buffer<f32>, !rt.buffer<f32>
  rt.update @many(%w2, %g) 4 with ["2", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17", "18", "19", "20", "21", "22", "23", "24", "25", "26", "27", "28", "29", "30", "31", "32"] at () tile 0 on_host false : !rt.buffer<f32>, !rt.buffer<f32>
  rt.update @many(%w3, %g) 4 with ["3", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17", "18", "19", "20", "21", "22", "23", "24", "25", "26", "27", "28", "29", "30", "31", "32"] at () tile 0 on_host false : !rt.buffer<f32>, !rt.buffer<f32>
  return
}
