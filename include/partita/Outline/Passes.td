//===- Passes.td - layers as functions over tables --------------------------------------------------===//

#ifndef PARTITA_OUTLINE_PASSES
#define PARTITA_OUTLINE_PASSES

include "mlir/Pass/PassBase.td"

def OutlineLayers : Pass<"outline-layers", "::mlir::ModuleOp"> {
  let summary = "layers that differ in data alone become one function over a table";
  let description = [{
    Phase: lower.

    Sequences of calls that are equal but for places in memory, names and numbers of things are written once, as `rt.layer`, and called with
    a row of its table each. Sequences are found by what the calls are, wherever they stand: what collectives or copies split, or a
    first layer that is another, leaves shorter ones. A sequence may begin a collective that another one waits for.

    ```mlir
    func.func @train_step() {
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

#endif // PARTITA_OUTLINE_PASSES
