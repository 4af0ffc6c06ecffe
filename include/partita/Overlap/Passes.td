//===- Passes.td - when collectives start, and what runs meanwhile --------------------------------------===//

#ifndef PARTITA_OVERLAP_PASSES
#define PARTITA_OVERLAP_PASSES

include "mlir/Pass/PassBase.td"

def PeelLastMicroBatchPass : Pass<"peel-last-micro-batch", "::mlir::ModuleOp"> {
  let summary = "takes the last micro-batch out of train.accumulate";
  let description = [{
    A gradient is complete during the last backward pass, not before: out of the loop, that pass can
    overlap with the reductions. A single micro-batch leaves no loop at all.

    ```mlir
    %sum = train.accumulate (%i = %ids) : (tensor<4x8xi64>) -> tensor<f32> { ... }
    // becomes
    %most = tx.slice %ids [0, 0] by [1, 1] : tensor<4x8xi64> -> tensor<3x8xi64>
    %part = train.accumulate (%i = %most) : (tensor<3x8xi64>) -> tensor<f32> { ... }
    %last = ...                              // the region once more, on the last micro-batch
    %sum = tx.add %part, %last
    ```
  }];
  let dependentDialects = ["::partita::tx::TxDialect", "::partita::train::TrainDialect"];
}

def BucketAllReducesPass : Pass<"bucket-all-reduces", "::mlir::ModuleOp"> {
  let summary = "joins all-reduces over one axis into buckets, in the order in which they become ready";
  let description = [{
    The backward pass makes gradients in reverse order of use; each bucket is started when its last
    gradient is there.

    ```mlir
    %a1 = par.all_reduce %a over "dp" because "gradient"
    %b1 = par.all_reduce %b over "dp" because "gradient"
    // becomes
    %r:2 = par.all_reduce %a, %b over "dp" because "gradient"
    ```
  }];
  let options = [Option<"bytes", "bytes", "int64_t", "25000000", "a bucket is closed when it has this many bytes">];
  let statistics = [Statistic<"buckets", "buckets", "buckets made">];
}

def StartCollectivesPass : Pass<"start-collectives", "::mlir::ModuleOp"> {
  let summary = "splits all-reduces into a start, where the operands are ready, and a wait, before the first use";
  let description = [{
    ```mlir
    %r = par.all_reduce %a over "dp"
    ...
    %y = tx.neg %r
    // becomes
    %t = par.all_reduce_start %a over "dp"
    ...
    %r = par.wait %t, %a
    %y = tx.neg %r
    ```
  }];
}

#endif // PARTITA_OVERLAP_PASSES
