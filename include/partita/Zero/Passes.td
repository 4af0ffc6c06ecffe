//===- Passes.td - which rank keeps which state ----------------------------------------------------------===//
//
// ZeRO (Rajbhandari et al., arXiv 1910.02054) as algebra on the data-parallel program: every rank of dp has the same
// states and makes the same update, so each rank can keep and update one shard of the states. If the mesh has an axis
// fsdp, the state is sharded over fsdp and replicated over dp (hybrid sharding, arXiv 2304.11277): read fsdp for dp
// below. Ranks of cp have the same states too: with them, each op below is one per axis, and a shard is cut again.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_ZERO_PASSES
#define PARTITA_ZERO_PASSES

include "mlir/Pass/PassBase.td"

def ZeroShardParametersPass : Pass<"zero-shard-parameters", "::mlir::ModuleOp"> {
  let summary = "shards each parameter over the data-parallel ranks, and gathers it where it is used (ZeRO stage 3)";
  let description = [{
    Phase: parameters.

    A parameter that all ranks of dp have is read as its flat shard and gathered right before its first use, in each block that uses it: in
    a loop over micro-batches, once per micro-batch. The gather replaces the `f` over dp, so differentiation makes its gradient a
    reduce-scatter, to exactly the shard that the rank updates. With `sync-each=step` the gather precedes the loop: the parameter stays
    gathered for all micro-batches, and its gradient is reduced once, after the loop. Parameters of at most `keep` elements per rank stay
    full (`zero-shard-states` then shards their update). Below stage 3 the pass does nothing.

    With `hpz` (ZeRO++'s hierarchical partitioning) the parameter is a shard over both axes that split the batch. It is gathered between
    groups first, then within: what the first gather leaves is the group's secondary copy, from which `gather-again` gathers.

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
                 Option<"strategy", "strategy", "std::string", "\"none\"", "FSDP's name of the stage, which must agree with it">,
                 Option<"keep", "keep", "int64_t", "0", "parameters of at most this many elements stay full">,
                 Option<"syncEach", "sync-each", "std::string", "\"micro-batch\"", "step: gathers before loops">,
                 Option<"hpz", "hpz", "int64_t", "1", "above 1: the batch is split over two axes, the inner one of so many ranks, and the state over both">];
  let statistics = [Statistic<"gathers", "gathers", "gathers inserted">];
  let dependentDialects = ["::partita::par::ParDialect", "::partita::train::TrainDialect", "::partita::zero::ZeroDialect"];
}

def ZeroShardStatesPass : Pass<"zero-shard-states", "::mlir::ModuleOp"> {
  let summary = "splits the updates, and the optimizer's states, over the data-parallel ranks (ZeRO stage 1)";
  let description = [{
    Phase: states.

    If all ranks of dp make the same update of a parameter, each updates only a flat shard: value and gradient are sharded, the states
    are stored as shards, and the new value is gathered. `zero`'s canonicalization makes the shard of a reduced gradient a
    reduce-scatter, so the communication volume stays the same: an all-reduce becomes a reduce-scatter and a gather. A state that
    something else reads in full (the momentum of 1-bit Adam) stays in full, and the update takes a shard of it. At stage 0 the pass does nothing.

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
  let options = [Option<"stage", "stage", "int64_t", "1", "0: nothing; from 1 on: updates and states">,
                 Option<"hpz", "hpz", "int64_t", "1", "above 1: the batch is split over two axes, the inner one of so many ranks, and the state over both">];
  let statistics = [Statistic<"sharded", "sharded", "updates sharded over the ranks">];
  let dependentDialects = ["::partita::par::ParDialect", "::partita::train::TrainDialect", "::partita::zero::ZeroDialect"];
}

def ZeroShardGradientsPass : Pass<"zero-shard-gradients", "::mlir::ModuleOp"> {
  let summary = "adds up shards of gradients over the micro-batches, not full gradients (ZeRO stage 2)";
  let description = [{
    Phase: states.

    Moves the reduce-scatter of a gradient from after the loop over micro-batches into it. A rank then never stores more than its shard
    of the sum, but every micro-batch communicates as much as the step did before. Below stage 2, and with `sync-each=step`, the pass
    does nothing.

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
  let options = [Option<"stage", "stage", "int64_t", "2", "below 2: nothing">,
                 Option<"syncEach", "sync-each", "std::string", "\"micro-batch\"", "step: nothing">];
  let statistics = [Statistic<"sharded", "sharded", "sums over micro-batches that became shards">];
  let dependentDialects = ["::partita::zero::ZeroDialect"];
}

def ZeroNestReductionsPass : Pass<"zero-nest-reductions", "::mlir::ModuleOp"> {
  let summary = "sums gradients over several axes by scattering, summing and gathering shards, as over one axis";
  let description = [{
    Phase: states.

    A gradient that is summed over one axis after another (dp and cp, dp and fsdp) is scattered over the axis further in in the mesh, summed as
    a shard over the other one, and gathered: with c and d ranks 2 (cd - 1)/(cd) of its bytes instead of 2 (c - 1)/c + 2 (d - 1)/d, and only
    2 (d - 1)/d of 1/c of them between the far ranks. A tensor whose padding would cost more than that saves stays as it is.

    ```mlir
    %1 = par.all_reduce %dw over "dp" because "gradient" ...
    %g = par.all_reduce %1 over "cp" because "gradient" ... -> tensor<4x6xf32>
    // becomes
    %1 = zero.reduce_scatter %dw over "cp" because "gradient" ... -> tensor<12xf32, #par.place<[4, 6], partial [dp], flat [cp]>>
    %2 = par.all_reduce %1 over "dp" because "gradient" ... -> tensor<12xf32, #par.place<[4, 6], flat [cp]>>
    %g = zero.gather %2 over "cp" because "gradient" ... -> tensor<4x6xf32>
    ```
  }];
  let statistics = [Statistic<"nested", "nested", "gradients summed as shards">];
  let dependentDialects = ["::partita::par::ParDialect", "::partita::zero::ZeroDialect"];
}

def ZeroPrefetchParametersPass : Pass<"zero-prefetch-parameters", "::mlir::ModuleOp"> {
  let summary = "joins the gathers of a layer's parameters into buckets and places them ahead of their use, within a bound";
  let description = [{
    Phase: overlap.

    Gathers of parameters whose first uses are in one layer and one direction join into buckets of at most `bucket-bytes` (with blocks of
    8 bits, one gather per size of block). A bucket is
    gathered before the first use of the previous bucket, so that it overlaps with the work on that one. It is gathered even earlier
    as long as all buckets that wait for their first use have at most `ahead-bytes`. The gather starts at its position in the program,
    and its buffer is free after its last use. If the backward pass needs a parameter that is still gathered for the forward pass, it
    uses that value (unless `always`). What is gathered over two axes is gathered over the first of them one bucket earlier.

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
    Option<"bucketBytes", "bucket-bytes", "int64_t", "25000000", "bytes of a bucket, at most; a larger parameter has its own">,
    Option<"aheadBytes", "ahead-bytes", "int64_t", "0",
           "bytes gathered and not yet used, at most; 0: one bucket while the previous one is used">,
    Option<"always", "always", "bool", "false", "gather again even if the parameter is still gathered">];
  let statistics = [Statistic<"ahead", "ahead", "buckets gathered before the use of the previous bucket">,
                    Statistic<"elided", "elided", "gathers of parameters that were still gathered">];
  let dependentDialects = ["::partita::zero::ZeroDialect"];
}

def ZeroQuantizeWeightsPass : Pass<"zero-quantize-weights", "::mlir::ModuleOp"> {
  let summary = "lets the program compute with weights in 8 bits, as ZeRO++ sends them";
  let description = [{
    Phase: precision.

    Every parameter of at least two dimensions is read rounded, in blocks of consecutive elements of its
    last dimension: the largest power of two that divides it and is at most `block`. Parameters whose names match a pattern of `exact`
    are read as they are stored, and so are those whose last dimension is odd. Rounding is a matter of the model, not of the mesh: the
    program on one rank computes with the same numbers.

    ```mlir
    %w = train.read @w : tensor<16x96xf32>
    // becomes, with on and block=64
    %w = train.read @w in int8 blocks of 32 : tensor<16x96xf32>
    ```
  }];
  let options = [Option<"on", "on", "bool", "false", "false: nothing">,
                 Option<"block", "block", "int64_t", "256", "elements of a block, at most">,
                 ListOption<"exact", "exact", "std::string", "patterns over the names of parameters that are exact">,
                 Option<"gradients", "gradients", "bool", "false", "gradients are rounded too: a pattern may be for a matrix of which only the gradient would be">];
  let statistics = [Statistic<"quantized", "quantized", "reads that round">];
  let dependentDialects = ["::partita::train::TrainDialect"];
}

def ZeroQuantizeGathersPass : Pass<"zero-quantize-gathers", "::mlir::ModuleOp"> {
  let summary = "gathers the 8-bit numbers and the scales of what is read rounded, instead of the numbers";
  let description = [{
    Phase: overlap.

    A shard is quantized where it is read, once per step, and dequantized right before its first use, so that the gather between them can
    be hidden. Of a shard that later passes gather again (hpZ's secondary copy), the 8-bit numbers and scales are saved. A shard that does not hold whole blocks is gathered as it is, and rounded afterwards; what is not gathered is rounded where
    it is read.

    ```mlir
    %w = zero.gather %shard over "dp" in int8 blocks of 4 because "parameter"
    %y = tx.matmul %x, %w
    // becomes
    %q, %s = zero.quantize_blocks %shard by 4
    %values = zero.gather %q over "dp" because "parameter"
    %scales = zero.gather %s over "dp" because "parameter"
    %w = zero.dequantize_blocks %values, %scales by 4
    %y = tx.matmul %x, %w
    ```
  }];
  let statistics = [Statistic<"quantized", "quantized", "shards that are gathered in 8 bits">,
                    Statistic<"exact", "exact", "tensors that are rounded, but not gathered in 8 bits">];
  let dependentDialects = ["::partita::zero::ZeroDialect"];
}

def ZeroQuantizeGradientsPass : Pass<"zero-quantize-gradients", "::mlir::ModuleOp"> {
  let summary = "lets ranks send gradients in 4 bits where they scatter them, as ZeRO++ does";
  let description = [{
    Phase: states.

    Every reduce-scatter between an update of a parameter of at least two dimensions and what computes its gradient rounds in blocks of
    `block` elements (down to a multiple of 8): over one axis after another, in each micro-batch or once, as they stand. Gradients of
    parameters whose names match a pattern of `exact`, and shards so small that a scale and a word take no fewer bytes than their elements, are summed exactly.
    With `weights` a pattern may be meant for these alone; else one that leaves no gradient exact is an error.
    Unlike weights in 8 bits (`zero-quantize-weights`) this is a matter of the mesh: what is rounded are a rank's terms.

    ```mlir
    %g = zero.reduce_scatter %dw over "fsdp" because "gradient"
    // becomes, with on and block=20
    %g = zero.reduce_scatter %dw over "fsdp" in int4 blocks of 16 because "gradient"
    ...
    ```
  }];
  let options = [Option<"on", "on", "bool", "false", "false: nothing">,
                 Option<"block", "block", "int64_t", "64", "elements of a block">,
                 Option<"stage", "stage", "int64_t", "3", "below 1: an error, because nothing is scattered">,
                 Option<"weights", "weights", "bool", "false", "patterns are for weights in 8 bits, too">,
                 ListOption<"exact", "exact", "std::string", "patterns over the names of parameters whose gradients are exact">];
  let statistics = [Statistic<"quantized", "quantized", "reduce-scatters that round">];
  let dependentDialects = ["::partita::zero::ZeroDialect"];
}

def ZeroQuantizeScattersPass : Pass<"zero-quantize-scatters", "::mlir::ModuleOp"> {
  let summary = "exchanges chunks of 4 bits, and sums them, where a reduce-scatter rounds";
  let description = [{
    Phase: overlap.

    A bucket is quantized into one tensor of bytes, which one all-to-all exchanges. The sum stands before the first use of a shard, or before
    the next exchange over the same axis, so that `start-collectives` hides the exchange between them and what is received does not pile up.
    In a pass's last slot (`train.last`) the loop hands out what is received, and the sum is behind it.

    ```mlir
    %g = zero.reduce_scatter %dw over "dp" in int4 blocks of 8 because "gradient"
    %z = tx.neg %y
    // becomes
    %chunks = zero.quantize_chunks %dw over "dp" by 8
    %received = zero.exchange_chunks %chunks over "dp" because "gradient"
    %z = tx.neg %y
    %g = zero.sum_chunks %received over "dp" by 8
    ```
  }];
  let statistics = [Statistic<"exchanged", "exchanged", "buckets that are exchanged in 4 bits">];
  let dependentDialects = ["::partita::zero::ZeroDialect"];
}

#endif // PARTITA_ZERO_PASSES
