//===- Passes.td - which layer an op belongs to, and its work ---------------------------------------===//

#ifndef PARTITA_LAYERS_PASSES
#define PARTITA_LAYERS_PASSES

include "mlir/Pass/PassBase.td"

def MarkLayersPass : Pass<"mark-layers", "::mlir::ModuleOp"> {
  let summary = "says of every op and parameter which layer of the model it belongs to";
  let description = [{
    Phase: objective.

    A layer is what repeats in the graph (partita/Analysis/Layers.h). All phases carry the mark on to what they make of
    the op (dialects/Interfaces/Provenance.h): recomputation and offload work layer by layer, and the memory ledger tells
    activations by layer. A parameter belongs to the layer that uses it first, and so do its updates and their states.

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
  let summary = "says on the module how much its forward program computes, layer by layer";
  let description = [{
    Phase: objective.

    While the program is the forward one alone, and its layers are marked: of @train_step, all micro-batches of a step, or,
    where nothing is trained, of @forward (partita/Analysis/Flops.h). The speed of a run in model FLOP/s and the table of
    `explain --flops` come from it, so nothing that later phases recompute or fuse changes them. `parameters` are the elements
    of those that are read there first.

    ```mlir
    train.parameter @w : tensor<4x6xf32>
    func.func @forward(%x: tensor<2x4xf32>) -> tensor<2x6xf32> {
      %0 = train.read @w : tensor<4x6xf32>
      %1 = tx.matmul %x, %0 : (tensor<2x4xf32>, tensor<4x6xf32>) -> tensor<2x6xf32>
    // becomes
    module attributes {train.work = [{backward = 0.0, elementwise = 0.0, parameters = 24, place = -1, products = 96.0} ]} {
      ...
    ```
  }];
  let statistics = [Statistic<"noted", "noted", "rows of work: layers and what is between them">];
}

#endif // PARTITA_LAYERS_PASSES
