//===- Passes.td - updates and layers over tables --------------------------------------------------===//

#ifndef PARTITA_OUTLINE_PASSES
#define PARTITA_OUTLINE_PASSES

include "mlir/Pass/PassBase.td"

def GatherUpdates : Pass<"gather-updates", "::mlir::ModuleOp"> {
  let summary = "joins updates of one kind, and their gradients' sums of squares, into calls over a table of tensors";
  let description = [{
    Phase: lower.

    Most of a model's tensors are so small that launching a kernel for each takes longer than its work. Consecutive updates, with only
    pointers and gradients shown to the host in between, become one `rt.update_all` over a table, `rt.tensors`, if they have the same
    kernel and memory spaces and use one of a few lists of scalars (weight decay or none). A row has a tensor's places; the rows of one
    call are in the order of the program's parameters. No update moves across another op that does work: updates that wait for different
    collectives, or start them, stay in different calls, each over some of the rows, so overlap stays as planned. On targets that do not
    poll collectives a poll does no work, and the copy of a rank's shard (ZeRO without masters) may move before the updates if it touches
    other memory.

    An update keeps its own call if no other joins it, if the host runs it, if another op separates it from the next one (LAMB's
    ratios), or if an earlier update reads or writes the same memory, which the planner may have given to both in turn. A kernel takes
    few scalars, so updates that all have different ones (keys of stochastic rounding) take several calls.

    `rt.square_sum` and the report of overflows read the same rows, or a table of their own.

    ```mlir
    func.func @train_step() attributes {train.entry_point = #train.entry_point<train_step>} {
      ...
      rt.expose_gradient %g0 {flatOver = array<i64>, index = 0 : i64}
      %w0 = rt.persistent 0 [8] : <f32>
      %m0 = rt.persistent 64 [8] : <f32>
      rt.update @momentum(%w0, %m0, %g0) 8 with ["*{}", "0.1"] at (%rate) tile 0 on_host false
      rt.expose_gradient %g1 {flatOver = array<i64>, index = 1 : i64}
      %w1 = rt.persistent 128 [4] : <f32>
      %m1 = rt.persistent 192 [4] : <f32>
      rt.update @momentum(%w1, %m1, %g1) 4 with ["*{}", "0.0"] at (%rate) tile 0 on_host false
    // becomes
    rt.tensors @updates in ["persistent", "persistent", "arena"] [f32, f32, f32] [#rt.tensor<"w0" at[0, 64, 0] elements 8 parameter 0>, #rt.tensor<"w1" at[128, 192, 64] elements 4 step 1 parameter 1>]
    func.func @train_step() attributes {train.entry_point = #train.entry_point<train_step>} {
      ...
      rt.expose_gradients @updates 2 0 2 flat []
      rt.update_all @momentum over @updates 0 2 with [["*{}", "0.1"], ["*{}", "0.0"]] at (%rate, %rate)
    ```
  }];
  let statistics = [
    Statistic<"gathered", "gathered", "updates that became rows">,
    Statistic<"sums", "sums", "sums of squares that became rows">,
  ];
  let dependentDialects = ["::partita::rt::RtDialect"];
}

def OutlineLayers : Pass<"outline-layers", "::mlir::ModuleOp"> {
  let summary = "makes one function over a table of layers that differ only in data";
  let description = [{
    Phase: lower.

    Sequences of calls that are equal except for places in memory, names and numbers are written once, as `rt.layer`, and each becomes a
    call with a row of the table. The calls alone determine the sequences, wherever they are: collectives or copies in between, or a
    first layer that differs, leave shorter ones. A sequence may start a collective that another one waits for. A layer without an operand
    that others have (`rt.null`) has an offset below 0.

    ```mlir
    func.func @train_step() attributes {train.entry_point = #train.entry_point<train_step>} {
      ...
      rt.comment "h.0.mlp"
      %y0 = rt.arena 64 [4, 4] : <f32>
      %w0 = rt.persistent 0 [4, 4] : <f32>
      rt.gemm %y0, %x, %w0 {..., m = 4, ...}
      ...
      rt.comment "h.1.mlp"
      %y1 = rt.arena 128 [4, 4] : <f32>
      %w1 = rt.persistent 128 [4, 4] : <f32>
      rt.gemm %y1, %y0, %w1 {..., m = 4, ...}
      ...
    // becomes
    rt.layer @h_forward of ["h.0", "h.1", "h.2"] columns ["previous_mlp", "mlp_weight"] [array<i64: 0, 64, 128>, array<i64: 0, 128, 256>] pending [] copies [] {
      rt.comment "mlp"
      %y = rt.arena 64 [4, 4] {rt.columns = {offset = #rt.column<"previous_mlp" plus 64>}} : <f32>
      %x = rt.arena 0 [4, 4] {rt.columns = {offset = #rt.column<"previous_mlp">}} : <f32>
      %w = rt.persistent 0 [4, 4] {rt.columns = {offset = #rt.column<"mlp_weight">}} : <f32>
      rt.gemm %y, %x, %w {..., m = 4, ...}
      ...
    }
    func.func @train_step() attributes {train.entry_point = #train.entry_point<train_step>} {
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

#endif // PARTITA_OUTLINE_PASSES
