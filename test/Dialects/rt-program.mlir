// A program's tables are read as they are printed; what has its usual value is not printed.
// RUN: partita-opt %s | FileCheck %s --match-full-lines
// RUN: partita-opt %s --emit-bytecode | partita-opt | FileCheck %s --match-full-lines

// CHECK: module attributes {par.mesh = #par.mesh<dp = 2, tp = 2>, rt.program = #rt.program<inputs = [#rt.input<name = "ids", role = "ids", type = tensor<4x8xi64>, vocabulary = 256>, #rt.input<name = "table", role = "data", type = tensor<8xf32>, batched = false, filler = -100>], outputs = [#rt.output<name = "logits", type = tensor<4x8x256xf32>, offset = 128>], census = [#rt.census<function = "train_step", kind = reduce_scatter, communicator = "dp", reason = "gradients", tensors = ["dw"], calls = 2, bytes = 64>, #rt.census<function = "train_step", kind = all_gather, communicator = "dp ahead", reason = "parameters">], collectives = [#rt.collective<function = "train_step", kind = reduce_scatter, axis = "dp", communicator = "dp", backward = true, bytes = 64, place = -3, parameters = ["a@0", "b@1"], merged = {{\[\[}}"c@0"], []], may_scatter = true>], undecayed = [@bias], communicators = [#rt.communicator<name = "dp", axes = ["dp"]>, #rt.communicator<name = "dp ahead", axes = ["dp"], streams = [#par.stream<"dp" ahead>]>], hyper = {beta1 = 9.000000e-01 : f64}, optimizer = "adam", accumulate = 2, to_host = 8>} {
module attributes {par.mesh = #par.mesh<dp = 2, tp = 2>, rt.program = #rt.program<
  inputs = [#rt.input<name = "ids", role = "ids", type = tensor<4x8xi64>, batched = true, vocabulary = 256>,
            #rt.input<name = "table", role = "data", type = tensor<8xf32>, batched = false, filler = -100>],
  outputs = [#rt.output<name = "logits", type = tensor<4x8x256xf32>, offset = 128>],
  census = [#rt.census<function = "train_step", kind = reduce_scatter, communicator = "dp", reason = "gradients", tensors = ["dw"], calls = 2, bytes = 64>,
            #rt.census<function = "train_step", kind = all_gather, communicator = "dp ahead", reason = "parameters">],
  collectives = [#rt.collective<function = "train_step", kind = reduce_scatter, axis = "dp", communicator = "dp", backward = true, bytes = 64, place = -3,
                                parameters = ["a@0", "b@1"], merged = [["c@0"], []], may_scatter = true>],
  undecayed = [@bias],
  communicators = [#rt.communicator<name = "dp", axes = ["dp"]>,
                   #rt.communicator<name = "dp ahead", axes = ["dp"], streams = [#par.stream<"dp" ahead>]>],
  hyper = {beta1 = 0.9}, optimizer = "adam", accumulate = 2, to_host = 8>} {
}
