//===- Passes.td - lower phase, in running order ----------------------------------------------===//

#ifndef PARTITA_LOWER_PASSES
#define PARTITA_LOWER_PASSES

include "mlir/Pass/PassBase.td"

def LowerToRt : Pass<"lower-to-rt", "::mlir::ModuleOp"> {
  let summary = "tensors to buffers, ops to calls of the runtime";
  let description = [{
    Every tensor op becomes the call that its model (KernelInterface) says, on pointers to the places
    that `plan-memory` gave. Collects what the program's tables need (inputs, outputs, census,
    hyperparameters) as the module's `rt.program`.

    ```mlir
    %0 = tx.matmul %x, %w {rt.buffers = [#rt.at<arena 64>]} : ...
    %1 = tx.broadcast %b {rt.buffers = ...} : tensor<6xf32> -> tensor<2x4x6xf32>
    %2 = tx.add %0, %1 {rt.buffers = [#rt.at<arena 64>]} : ...
    // becomes
    %y = rt.arena 64 [2, 4, 6] : !rt.buffer<f32>
    rt.gemm %y, %x, %w {m = 8, n = 6, k = 8, ...} : ...
    rt.launch @map_add(%sum, %y, %b) [8, 6] [6, 6, 0] : ...
    // where @map_add is made once
    rt.kernel @map_add loops 2 outputs ["out"] [f32] inputs ["a", "b"] [f32, f32] steps [1, 1, 1] locals [] computes ["$a + $b"]
    ```
  }];
  let options = [
    Option<"learningRate", "learning-rate", "double", "0.001", "the program's rate unless a run sets another">,
    Option<"schedule", "schedule", "std::string", "\"constant\"", "the program's schedule of rates unless a run sets another">,
  ];
  let dependentDialects = ["::partita::tx::TxDialect", "::partita::train::TrainDialect", "::partita::par::ParDialect", "::partita::rt::RtDialect"];
}

def OutlineLayers : Pass<"outline-layers", "::mlir::ModuleOp"> {
  let summary = "layers that differ in data alone become one function over a table";
  let description = [{
    Sequences of calls that are equal but for places in memory, names and numbers of things are written once, as `rt.layer`, and called with
    a row of its table each. Sequences are found by what the calls are, wherever they stand: what collectives or copies split, or a
    first layer that is another, leaves shorter ones. A sequence may begin a collective that another one waits for.

    ```mlir
    func.func @train_step() {
      ...
      rt.comment "h.0.mlp"
      %y0 = rt.arena 64 [4, 4] : <f32>
      %w0 = rt.persistent 0 [4, 4] : <f32>
      rt.gemm %y0, %x, %w0 {m = 4, ...} : ...  // and more
      rt.comment "h.1.mlp"
      %y1 = rt.arena 128 [4, 4] : <f32>
      %w1 = rt.persistent 128 [4, 4] : <f32>
      rt.gemm %y1, %y0, %w1 {m = 4, ...} : ...
      ...
    // becomes
    rt.layer @h_forward of ["h.0", "h.1", "h.2"] columns ["arena", "mlp_weight"] [array<i64: 0, 64, 128>, array<i64: 0, 128, 256>] pending [] copies [] {
      rt.comment "mlp"
      %y = rt.arena 64 [4, 4] {rt.columns = {offset = #rt.column<"arena" plus 64>}} : <f32>
      %x = rt.arena 0 [4, 4] {rt.columns = {offset = #rt.column<"arena">}} : <f32>
      %w = rt.persistent 0 [4, 4] {rt.columns = {offset = #rt.column<"mlp_weight">}} : <f32>
      rt.gemm %y, %x, %w {m = 4, ...} : ...
      ...
    }
    func.func @train_step() {
      ...
      rt.call @h_forward 0 times 3 pending [] copies []
    ```
  }];
  let statistics = [
    Statistic<"functions", "functions", "functions made">,
    Statistic<"outlined", "outlined", "sequences of calls that became one call">,
  ];
  let dependentDialects = ["::partita::rt::RtDialect"];
}

def RtToEmitC : Pass<"rt-to-emitc", "::mlir::ModuleOp"> {
  let summary = "the exit dialect to EmitC, one op to one";
  let description = [{
    A call becomes `emitc.call_opaque`, or `emitc.verbatim` where an argument is an aggregate; a kernel
    becomes an `emitc.func`. Names stay in locations. Parameters and states stay for the tables.

    ```mlir
    %x = rt.arena 64 [2, 4] : !rt.buffer<f32>
    rt.softmax_forward %x, %x {rows = 2, width = 4} : ...
    rt.count_labels %x, %ids {n = 2, ignore = -100} : ...
    // becomes
    %x = emitc.call_opaque "rank.at"() {args = [64], rt.comment = "[2, 4]"} : () -> !emitc.ptr<!emitc.opaque<"float">>
    emitc.call_opaque "softmaxForward"(%x, %x) {args = [0 : index, 1 : index, #emitc.opaque<"2">, #emitc.opaque<"4">]} : ...
    emitc.verbatim "*{} = float(countLabels({}, 2, -100));" args %x, %ids : ...
    ```
  }];
  let dependentDialects = ["::mlir::emitc::EmitCDialect"];
}

#endif // PARTITA_LOWER_PASSES
