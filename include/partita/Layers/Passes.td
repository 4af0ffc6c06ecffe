//===- Passes.td - which layer an op belongs to, and its work ---------------------------------------===//

#ifndef PARTITA_LAYERS_PASSES
#define PARTITA_LAYERS_PASSES

include "mlir/Pass/PassBase.td"

def MarkLayersPass : Pass<"mark-layers", "::mlir::ModuleOp"> {
  let summary = "marks every op and parameter with its layer of the model";
  let description = [{
    Phase: objective.

    A layer is a part of the graph that repeats (partita/Analysis/Layers.h). All phases copy the mark to the ops they derive from an op
    (dialects/Interfaces/Provenance.h): recomputation and offload work layer by layer, and the memory ledger lists activations by layer. A
    parameter belongs to the layer that uses it first, as do its updates and states.

    ```mlir
    %0 = tx.matmul %s, %w0 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    // becomes
    %0 = tx.matmul %s, %w0 {train.layer = #train.layer<0 of 2>, train.name = "/h.0/MatMul"} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    ```
  }];
  let dependentDialects = ["::partita::train::TrainDialect"];
  let statistics = [Statistic<"marked", "marked", "ops that belong to a layer">];
}

def NoteFlopsPass : Pass<"note-flops", "::mlir::ModuleOp"> {
  let summary = "records the FLOPs of the forward program, layer by layer";
  let description = [{
    Phase: objective.

    Runs after layers are marked, while there is only the forward program. Counts @train_step, with all micro-batches of a step, or
    @forward if nothing is trained (partita/Analysis/Flops.h). The model FLOP/s of a run and the table of `explain --flops` come from
    this record, so recomputation and fusion in later phases do not change them. `parameters` counts the elements of the parameters that
    the layer reads first.

    ```mlir
    train.parameter @w : tensor<4x6xf32>
    func.func @forward(%x: tensor<2x4xf32>) -> tensor<2x6xf32> attributes {train.entry_point = #train.entry_point<forward>} {
      %0 = train.read @w : tensor<4x6xf32>
      %1 = tx.matmul %x, %0 : (tensor<2x4xf32>, tensor<4x6xf32>) -> tensor<2x6xf32>
    // becomes
    module attributes {train.work = [#train.work<place = -1, matmuls = 96.0, elementwise = 0.0, backward = 0.0, parameters = 24>]} {
      ...
    ```
  }];
  let dependentDialects = ["::partita::train::TrainDialect"];
  let statistics = [Statistic<"noted", "noted", "rows of work: layers and the parts between them">];
}

#endif // PARTITA_LAYERS_PASSES
