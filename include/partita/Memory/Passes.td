//===- Passes.td - memory phase, in running order ---------------------------------------------===//

#ifndef PARTITA_MEMORY_PASSES
#define PARTITA_MEMORY_PASSES

include "mlir/Pass/PassBase.td"

def PlanMemory : Pass<"plan-memory", "::mlir::ModuleOp"> {
  let summary = "gives every tensor its memory: persistent, or an offset in one arena by lifetime";
  let description = [{
    Phase: memory.

    - Parameters and states get fixed offsets in persistent memory. Reads use that memory directly, and an update that is written back
      is in-place if the old value has no later use.
    - Reshapes, slices, transposes and broadcasts are views if all their users support the strides; the operands of a concatenation
      are computed into it if their kernels can.
    - A result overwrites an operand at its last use if the kernel allows it. A result that is written to a parameter or state that the
      function does not read is computed there, so @init needs no arena.
    - Everything else gets an offset in the arena by its lifetime, largest first, into the tightest gap. An operand of an asynchronous
      collective lives until its wait.
    - On a target that queues work, what updates between two waits read lives until the last of them, if the arena is no larger for it:
      then `gather-updates` makes them one launch.
    - The host reads the results of @forward: its return names a place in the arena for each result, and results that are an input,
      a parameter or a view of one are copied there.

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
    Statistic<"views", "views", "reshapes, slices, transposes, broadcasts and concatenations without a copy">,
    Statistic<"copies", "copies", "reshapes, slices, transposes and broadcasts that copy">,
    Statistic<"inPlace", "in-place", "results that overwrite an operand">,
  ];
}

#endif // PARTITA_MEMORY_PASSES
