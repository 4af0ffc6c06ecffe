//===- Passes.td - memory phase, in running order ---------------------------------------------===//

#ifndef PARTITA_MEMORY_PASSES
#define PARTITA_MEMORY_PASSES

include "mlir/Pass/PassBase.td"

def PlanMemory : Pass<"plan-memory", "::mlir::ModuleOp"> {
  let summary = "gives every tensor its place: persistent memory, or an offset in one arena by lifetime";
  let description = [{
    Phase: memory.

    Parameters and states get fixed offsets in persistent memory; reads are that memory itself, and
    an update that is written back happens in place when nobody reads the old value later. Reshapes, slices,
    transposes and broadcasts are views where all their users take the strides; the operands of a
    concatenation are computed into place where their kernels can. A result overwrites an operand
    that dies where the kernel allows it; one that is written to a parameter or state that the function does
    not read is computed there, so that @init needs no arena. Everything else gets an offset in the arena by its
    interval of life, largest first, into the tightest gap. An operand of an asynchronous collective
    lives until its wait. The host reads what @forward returns: its return names a place in the arena for each
    result, to which an input, a parameter or a view of one is copied.

    ```mlir
    %0 = tx.relu %x : (tensor<4xf32>) -> tensor<4xf32>
    %1 = tx.exp %0 : (tensor<4xf32>) -> tensor<4xf32>
    // becomes
    %0 = tx.relu %x {rt.buffers = [#rt.at<arena 0>]} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = tx.exp %0 {rt.buffers = [#rt.at<arena 0>]} : (tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
  let dependentDialects = ["::partita::tx::TxDialect", "::partita::train::TrainDialect", "::partita::par::ParDialect", "::partita::rt::RtDialect"];
  let statistics = [
    Statistic<"views", "views", "reshapes, slices, transposes, broadcasts and concatenations that cost nothing">,
    Statistic<"copies", "copies", "reshapes, slices, transposes and broadcasts that copy">,
    Statistic<"inPlace", "in-place", "results that overwrite an operand">,
  ];
}

#endif // PARTITA_MEMORY_PASSES
