//===- Passes.td - who keeps what of the model's state --------------------------------------------------===//
//
// ZeRO (Rajbhandari et al., arXiv 1910.02054) as algebra on the data-parallel program: every rank of dp has the same
// states and makes the same update, so each may keep a piece of the states and update that. Where the mesh has an axis
// fsdp, its ranks share the state and those of dp repeat it (hybrid sharding, arXiv 2304.11277): read fsdp for dp below.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_ZERO_PASSES
#define PARTITA_ZERO_PASSES

include "mlir/Pass/PassBase.td"

def ZeroShardParametersPass : Pass<"zero-shard-parameters", "::mlir::ModuleOp"> {
  let summary = "keeps a piece of each parameter on each data-parallel rank, and gathers it where it is used (ZeRO stage 3)";
  let description = [{
    Phase: parameters.

    A parameter that all ranks of dp have is read as its flat piece, and gathered right before its first use, in each
    block that uses it: within a loop over micro-batches that is once per micro-batch. The gather takes the place of
    the `f` over dp, so differentiation makes a reduce-scatter of its gradient, to the very piece that the rank
    updates. Parameters of at most `keep` elements of a rank stay whole (`zero-shard-states` then shares their update).
    Below stage 3 it leaves the program as it is.

    ```mlir
    %w = train.read @w : tensor<4x6xf32>
    %1 = par.f %w over "dp" : tensor<4x6xf32> -> tensor<4x6xf32, #par.place<[4, 6], replicated [dp]>>
    %y = tx.matmul %x, %1
    // becomes
    %w = train.read @w : tensor<12xf32, #par.place<[4, 6], flat [dp]>>
    %1 = zero.gather %w over "dp" because "parameter" : tensor<12xf32, #par.place<[4, 6], flat [dp]>> -> tensor<4x6xf32, #par.place<[4, 6], replicated [dp]>>
    %y = tx.matmul %x, %1
    ```
  }];
  let options = [Option<"stage", "stage", "int64_t", "3", "below 3: nothing">,
                 Option<"strategy", "strategy", "std::string", "\"none\"", "FSDP's name of the stage, which must be it">,
                 Option<"keep", "keep", "int64_t", "0", "parameters of at most this many elements stay whole">];
  let statistics = [Statistic<"gathers", "gathers", "gathers inserted">];
  let dependentDialects = ["::partita::par::ParDialect", "::partita::train::TrainDialect", "::partita::zero::ZeroDialect"];
}

def ZeroShardStatesPass : Pass<"zero-shard-states", "::mlir::ModuleOp"> {
  let summary = "splits the updates, and the optimizer's states, over the data-parallel ranks (ZeRO stage 1)";
  let description = [{
    Phase: states.

    Of each parameter that all ranks of dp update alike, each updates a flat piece: value and gradient are sharded, the
    states are kept as pieces, and the new value is gathered. That the piece of a reduced gradient is a
    reduce-scatter is `zero`'s canonicalization, so nothing is moved that was not moved before: an all-reduce
    becomes a reduce-scatter and a gather. Stage 0 leaves the program as it is.

    ```mlir
    %m = train.read @w.m : tensor<3x5xf32>
    %g = par.all_reduce %dw over "dp" because "gradient" : tensor<3x5xf32, #par.place<[3, 5], partial [dp]>> -> tensor<3x5xf32>
    %new, %newM, %newV = train.adamw %w, %g, %m, %v, %rate, %step {...}
    train.write @w, %new
    // becomes
    %m = train.read @w.m : tensor<8xf32, #par.place<[3, 5], flat [dp]>>
    %g = par.all_reduce %dw over "dp" because "gradient" : tensor<3x5xf32, #par.place<[3, 5], partial [dp]>> -> tensor<3x5xf32>
    %shard = zero.shard %w over "dp" : tensor<3x5xf32> -> tensor<8xf32, #par.place<[3, 5], flat [dp]>>
    %grad = zero.shard %g over "dp" : tensor<3x5xf32> -> tensor<8xf32, #par.place<[3, 5], flat [dp]>>
    %new, %newM, %newV = train.adamw %shard, %grad, %m, %v, %rate, %step {...}
    %full = zero.gather %new over "dp" because "updated parameter" : tensor<8xf32, #par.place<[3, 5], flat [dp]>> -> tensor<3x5xf32>
    train.write @w, %full
    ```
  }];
  let options = [Option<"stage", "stage", "int64_t", "1", "0: nothing; from 1 on: updates and states">];
  let statistics = [Statistic<"sharded", "sharded", "updates that the ranks share">];
  let dependentDialects = ["::partita::par::ParDialect", "::partita::train::TrainDialect", "::partita::zero::ZeroDialect"];
}

def ZeroShardGradientsPass : Pass<"zero-shard-gradients", "::mlir::ModuleOp"> {
  let summary = "adds up pieces of gradients over the micro-batches, not wholes (ZeRO stage 2)";
  let description = [{
    Phase: states.

    A gradient that is reduced and scattered behind the loop over micro-batches is within it, so that a rank never
    keeps a sum of more than its piece; every micro-batch sends what the step sent once. Below stage 2 it leaves the
    program as it is.

    ```mlir
    %sum = train.accumulate (%x = %batches) : ... -> tensor<2x3xf32, #par.place<[2, 3], partial [dp]>> {
      %part = tx.neg %x
      train.yield %part
    }
    %g = zero.reduce_scatter %sum over "dp" because "gradient"
    // becomes
    %g = train.accumulate (%x = %batches) : ... -> tensor<3xf32, #par.place<[2, 3], flat [dp]>> {
      %part = tx.neg %x
      %shard = zero.reduce_scatter %part over "dp" because "gradient"
      train.yield %shard
    }
    ```
  }];
  let options = [Option<"stage", "stage", "int64_t", "2", "below 2: nothing">];
  let statistics = [Statistic<"sharded", "sharded", "sums of micro-batches that became pieces">];
  let dependentDialects = ["::partita::zero::ZeroDialect"];
}

def ZeroPrefetchParametersPass : Pass<"zero-prefetch-parameters", "::mlir::ModuleOp"> {
  let summary = "joins the gathers of a layer's parameters and places them ahead of their use, within a bound";
  let description = [{
    Phase: overlap.

    Gathers of parameters whose first uses belong to one layer, in one direction, join into buckets of at most
    `bucket-bytes`. A bucket is gathered before the first use of the bucket before it, so that it has that one's work to
    hide behind; and earlier as long as all that is gathered and waits for its first use is at most `ahead-bytes`. Where
    the gather starts is where it stands, and what it fills is free after its last use. What would be gathered again while
    the forward pass still uses what it has gathered is not: the backward pass uses that (unless `always`).

    ```mlir
    %1 = zero.gather %a over "dp" because "parameter"
    %y = tx.mul %x, %1
    %2 = zero.gather %b over "dp" because "parameter"
    %z = tx.mul %y, %2
    %3 = zero.gather %c over "dp" because "parameter"
    %u = tx.mul %z, %3
    // becomes, where %b and %c belong to one layer
    %1 = zero.gather %a over "dp" because "parameter"
    %2, %3 = zero.gather %b, %c over "dp" because "parameter"
    %y = tx.mul %x, %1
    %z = tx.mul %y, %2
    %u = tx.mul %z, %3
    ```
  }];
  let options = [
    Option<"bucketBytes", "bucket-bytes", "int64_t", "25000000", "a bucket has at most this many bytes, or one parameter">,
    Option<"aheadBytes", "ahead-bytes", "int64_t", "0",
           "gathered and not yet used, at most; 0: one bucket while the one before it is used">,
    Option<"always", "always", "bool", "false", "gather again even what is still there">];
  let statistics = [Statistic<"ahead", "ahead", "buckets gathered before the use of the bucket in front of theirs">,
                    Statistic<"elided", "elided", "gathers of what was still there">];
  let dependentDialects = ["::partita::zero::ZeroDialect"];
}

#endif // PARTITA_ZERO_PASSES
