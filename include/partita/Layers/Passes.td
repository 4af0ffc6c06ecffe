//===- Passes.td - which layer an op belongs to, and its work ---------------------------------------===//

#ifndef PARTITA_LAYERS_PASSES
#define PARTITA_LAYERS_PASSES

include "mlir/Pass/PassBase.td"

def MarkLayersPass : Pass<"mark-layers", "::mlir::ModuleOp"> {
  let summary = "says in every op's location which layer of the model it belongs to";
  let description = [{
    A layer is what repeats in the graph (partita/Analysis/Layers.h). The mark is the metadata of the location, so
    all phases carry it on to what they make of the op, and the ledger of memory can tell activations by layer.

    ```mlir
    %0 = tx.matmul %s, %w0 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32> loc("/h.0/MatMul")
    // becomes
    %0 = tx.matmul %s, %w0 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32> loc(fused<#train.layer<0 of 2>>["/h.0/MatMul"])
    ```
  }];
  let dependentDialects = ["::partita::train::TrainDialect"];
  let statistics = [Statistic<"marked", "marked", "ops that belong to a layer">];
}

def NoteFlopsPass : Pass<"note-flops", "::mlir::ModuleOp"> {
  let summary = "says on the module how much its forward program computes, layer by layer";
  let description = [{
    While the program is the forward one alone, and its layers are marked: of @train_step, all micro-batches of a step, or,
    where nothing is trained, of @forward (partita/Analysis/Flops.h). The speed of a run in model FLOP/s and the table of
    `explain --flops` come from it, so nothing that later phases recompute or fuse changes them. `parameters` are the elements
    of those that are read there first.

    ```mlir
    module {
      train.parameter @w : tensor<4x6xf32>
      func.func @forward(%x: tensor<2x4xf32>) -> tensor<2x6xf32> {
        %0 = train.read @w : tensor<4x6xf32>
        %1 = tx.matmul %x, %0 : (tensor<2x4xf32>, tensor<4x6xf32>) -> tensor<2x6xf32>
    // becomes
    module attributes {train.work = [{backward = 0.0, elementwise = 0.0, parameters = 24, place = -1, products = 96.0} ]} {
    ```
  }];
}

#endif // PARTITA_LAYERS_PASSES
