//===- Passes.td - the order of micro-batches and of their passes --------------------------------------===//

#ifndef PARTITA_SCHEDULE_PASSES
#define PARTITA_SCHEDULE_PASSES

include "mlir/Pass/PassBase.td"

def ScheduleBackwardPass : Pass<"schedule-backward", "::mlir::ModuleOp"> {
  let summary = "runs each micro-batch's backward pass right after its forward pass";
  let description = [{
    Phase: schedule.

    The two regions of `train.accumulate` become one: the saved values are the forward pass's own, the backward ops are marked
    `train.backward`, and the region yields the values of both. The saved values of one micro-batch at a time are in memory.

    The same happens in a pipeline stage whose order runs each micro-batch's backward pass right after its forward pass, if the loop has
    `pipe.may_join` and its backward pass receives nothing: the last stage of 1F1B. Kernels that span both (`fuse-classifier`) are then the
    same as without stages. The order has one slot for each pair.

    ```mlir
    %sum, %dsum = train.accumulate (%i = %x) : (tensor<4x8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
      %y = tx.exp %i
      train.yield %y ... saves %y
    } backward (%j, %y_saved) {
      %d = tx.mul %j, %y_saved
      train.yield %d
    }
    // becomes
    %sum, %dsum = train.accumulate (%i = %x) : (tensor<4x8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
      %y = tx.exp %i
      %d = tx.mul %i, %y {train.backward}
      train.yield %y, %d
    }
    ```
  }];
  let statistics = [Statistic<"joined", "joined", "loops whose passes became one region">];
  let dependentDialects = ["::partita::train::TrainDialect"];
}

def PeelLastMicroBatchPass : Pass<"peel-last-micro-batch", "::mlir::ModuleOp"> {
  let summary = "takes the last micro-batch out of train.accumulate";
  let description = [{
    Phase: schedule.

    Gradients become complete only during the last backward pass. Outside the loop, that pass can overlap with
    the reductions. A single micro-batch leaves no loop at all.

    ```mlir
    %sum = train.accumulate (%i = %x) : (tensor<4x8xf32>) -> tensor<8xf32> {
      %y = tx.exp %i
      train.yield %y
    }
    // becomes
    %last = tx.slice %x [3, 0] by [1, 1] : tensor<4x8xf32> -> tensor<1x8xf32>
    %j = tx.reshape %last : tensor<1x8xf32> -> tensor<8xf32>
    %most = tx.slice %x [0, 0] by [1, 1] : tensor<4x8xf32> -> tensor<3x8xf32>
    %part = train.accumulate (%i = %most) : (tensor<3x8xf32>) -> tensor<8xf32> {
      %y = tx.exp %i
      train.yield %y
    }
    %z = tx.exp %j                           // the region once more, on the last micro-batch
    %sum = tx.add %part, %z
    ```
  }];
  let statistics = [Statistic<"peeled", "peeled", "loops without their last micro-batch">];
  let dependentDialects = ["::partita::tx::TxDialect", "::partita::train::TrainDialect"];
}

#endif // PARTITA_SCHEDULE_PASSES
