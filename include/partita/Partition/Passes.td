//===- Passes.td - from one program to one per rank --------------------------------------------------===//
//
// In running order. The letters of every op's rule determine how a split of one value splits the others; f and g go
// where an op needs another placement than its operand has. No pass knows a strategy or an op by name.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_PARTITION_PASSES
#define PARTITA_PARTITION_PASSES

include "mlir/Pass/PassBase.td"

def PartitionUnsharePass : Pass<"partition-unshare", "::mlir::ModuleOp"> {
  let summary = "clones broadcasts and constants, one for each user";
  let description = [{
    Phase: partition.

    A broadcast or a constant that several layers read would force one split on all of them. Each user gets a clone; `cse` merges
    clones with the same placement.

    ```mlir
    %table = tx.broadcast %angles : tensor<6x8xf32> -> tensor<4x6x8xf32>
    %0 = tx.mul %q, %table
    %1 = tx.mul %p, %table
    // becomes
    %table = tx.broadcast %angles : tensor<6x8xf32> -> tensor<4x6x8xf32>
    %0 = tx.mul %q, %table
    %again = tx.broadcast %angles : tensor<6x8xf32> -> tensor<4x6x8xf32>
    %1 = tx.mul %p, %again
    ```
  }];
  let statistics = [Statistic<"clones", "clones", "clones made">];
}

def PartitionSeedPass : Pass<"partition-seed", "::mlir::ModuleOp"> {
  let summary = "splits the batch of every input over the data-parallel axes";
  let description = [{
    Phase: partition.

    Sets the module's mesh and marks arguments that have a batch dimension.

    ```mlir
    func.func @forward(%ids: tensor<8x16xi64> {train.batch = 0})
    // becomes, with mesh=dp=2
    module attributes {par.mesh = #par.mesh<dp = 2>} {
      func.func @forward(%ids: tensor<8x16xi64> {par.split = #par.place<[8 @dp, 16]>, train.batch = 0})
    ```
  }];
  let options = [Option<"mesh", "mesh", "std::string", "\"\"", "axes and sizes, outermost first: dp=4">];
  let statistics = [Statistic<"batches", "batches", "inputs whose batch is split">];
  let dependentDialects = ["::partita::par::ParDialect"];
}

def PartitionSeedContextPass : Pass<"partition-seed-context", "::mlir::ModuleOp"> {
  let summary = "splits sequences over the context-parallel axis, from the inputs on";
  let description = [{
    Phase: partition.

    Everything that has the sequence of an input is split along it, from where a parameter is joined to it (the embedding of the tokens).
    Inputs are split if all that use them work on shards. What every query or every rank needs in full stays so: a mask of the keys is
    narrowed where it has a row per query, and positions, like the rows of a table of positions, where they are used. An attention whose
    sequences are split gets `ring`: it exchanges keys itself. Where an op cannot work on a shard (the pooling of one token, logits that
    a program returns), its operand is gathered.

    In a ring of causal attentions, every rank has a chunk of the first half of a sequence and one of the second half, dealt backwards
    (`2 x 8 @cp mirrored` in #par.place), so that all have as much to do in every step; unless there is a window, 2 c chunks do not divide the sequence,
    or an op needs it in full or cannot work on two parts of it. `par.in_order` of the module says what stands in the way.

    With `how=all-to-all` an attention is split by heads instead (Jacobs et al., arXiv 2309.14509): `par.all_to_all` exchanges a rank's part of the
    sequence of all heads for all of the sequence of its heads, before and behind. `auto` takes what moves fewer bytes per layer.

    An axis `ulysses` splits each rank's part of a sequence once more. Within the ring over `cp`, heads are then exchanged over `ulysses` (Fang & Zhao, arXiv
    2405.07719); without `cp`, it is the axis of the exchange.

    ```mlir
    func.func @forward(%ids: tensor<2x8xi64> {train.batch = 0}, %mask: tensor<2x1x1x8xf32> {train.batch = 0})
      %e = tx.embedding %wte, %ids
      %rows = tx.slice %wpe [0, 0] by [1, 1]
      %p = tx.broadcast %rows
      ...
      %out, %lse = tx.attention %q, %q, %q bias %mask scale 0.5
    // becomes, with how=ring
    func.func @forward(%ids: tensor<2x8xi64> {par.split = #par.place<[2, 8 @cp]>, train.batch = 0}, %mask: tensor<2x1x1x8xf32> {train.batch = 0})
      %e = tx.embedding %wte, %ids
      %rows = tx.slice %wpe [0, 0] by [1, 1]
      %n = par.narrow %rows over "cp" along 0
      %p = tx.broadcast %n
      ...
      %out, %lse = tx.attention %q, %q, %q bias %mask scale 0.5 ring "cp"
    ```
  }];
  let options = [Option<"how", "how", "std::string", "\"auto\"", "how ranks get the keys of others: ring, all-to-all, or auto">,
                 Option<"sequenceParallel", "sequence-parallel", "bool", "false", "tensor parallelism splits again what a rank has of a sequence">];
  let statistics = [Statistic<"inputs", "inputs", "inputs whose sequence is split">, Statistic<"rings", "rings", "attentions in a ring">,
                    Statistic<"mirrored", "mirrored", "attentions in a ring whose sequences are dealt in mirrored order">,
                    Statistic<"exchanges", "exchanges", "exchanges of heads for positions">,
                    Statistic<"gathers", "gathers", "gathers inserted">, Statistic<"narrows", "narrows", "narrows inserted">];
  let dependentDialects = ["::partita::par::ParDialect", "::partita::tx::TxDialect"];
}

def PartitionSeedUserPass : Pass<"partition-seed-user", "::mlir::ModuleOp"> {
  let summary = "splits the dimensions of parameters that the user names";
  let description = [{
    Phase: partition.

    Each entry of `shard` is PATTERN=AXIS@DIM: a glob pattern over parameter names, an axis of the module's mesh and a dimension of
    the parameter as it is in the module; or PATTERN=replicated, which keeps parameters full. All dimensions that the rules' letters
    tie to this one are split with it. Entries are applied in order; one that cannot hold is an error that names the reason and the
    entry it conflicts with.

    ```mlir
    train.parameter @up : tensor<4x16xf32>          // gelu(x up) down
    train.parameter @down : tensor<16x4xf32>
    // becomes, with shard=up=tp@1
    train.parameter @up : tensor<4x16xf32> {par.seeds = {tp = #par.seed<"user" "up=tp@1" of ["up@1", "down@0"]>}, par.split = #par.place<[4, 16 @tp]>}
    train.parameter @down : tensor<16x4xf32> {..., par.split = #par.place<[16 @tp, 4]>}
    ```

    `par.seeds` records the request and the dimensions that are split together.
  }];
  let options = [ListOption<"shard", "shard", "std::string", "PATTERN=AXIS@DIM or PATTERN=replicated">];
  let statistics = [Statistic<"split", "split", "parameters split on request">,
                    Statistic<"kept", "kept", "parameters kept full on request">];
  let dependentDialects = ["::partita::par::ParDialect", "::partita::tx::TxDialect"];
}

def PartitionSeedAnnotatedPass : Pass<"partition-seed-annotated", "::mlir::ModuleOp"> {
  let summary = "splits the dimensions that the model's file annotates";
  let description = [{
    Phase: partition.

    Applies the sharding annotations of one device configuration of the ONNX file (`train.shardings`). Annotations of parameters are
    binding; that of a result is followed if the rules allow it, and otherwise a remark gives the reason. The configuration must have as
    many devices as the mesh has ranks, or as one replica has (all axes but dp and cp); device i is rank i of them. Without `configuration`,
    the one that fits is used; `none` ignores all.

    ```mlir
    train.parameter @up : tensor<4x16xf32> {train.shardings = [#train.sharding<"pair" by "up_proj", dims = [1], blocks = [1], shards = [2], devices = [array<i64: 0>, array<i64: 1>]>]}
    train.parameter @down : tensor<16x4xf32>        // gelu(x up) down
    // becomes
    train.parameter @up : tensor<4x16xf32> {..., par.split = #par.place<[4, 16 @tp]>}
    train.parameter @down : tensor<16x4xf32> {..., par.split = #par.place<[16 @tp, 4]>}
    ```
  }];
  let options = [Option<"configuration", "configuration", "std::string", "\"\"",
                        "which of the file's device configurations; none: ignore all">];
  let statistics = [Statistic<"followed", "followed", "tensors annotated in the model's file">];
  let dependentDialects = ["::partita::par::ParDialect", "::partita::tx::TxDialect"];
}

def PartitionSeedTensorPass : Pass<"partition-seed-tensor", "::mlir::ModuleOp"> {
  let summary = "chooses the dimensions of parameters that are split over tp, from the rules";
  let description = [{
    Phase: partition.

    Splits a dimension of a parameter, with all dimensions that the rules' letters tie to it, if no op on the way forbids it, a
    matmul or a lookup table becomes smaller, and the sizes divide. The result is Megatron's layout (Shoeybi et al., arXiv
    1909.08053): columns then rows of an MLP, attention by heads, a fused projection within its blocks, embedding and head by the
    vocabulary.

    - Dimensions that are still full are tried once more with norms written out (letters marked `^!`), fewer norms first: needed
      for norms over all queries, where attention would otherwise stay full.
    - If only a size prevents a split, an op takes a form without that size: attention with fewer key heads
      than ranks repeats them, so that every rank has those of its queries.
    - If one block of a fused weight prevents a split of the others (one key head for all queries), the slices
      of the matmul's result become matmuls with slices of the weight. The weight stays full; each rank takes
      its shard of a block that can be split, by `par.narrow`.

    ```mlir
    train.parameter @up : tensor<4x16xf32>          // gelu(x up + bias) down
    train.parameter @bias : tensor<16xf32>
    train.parameter @down : tensor<16x4xf32>
    // becomes
    train.parameter @up : tensor<4x16xf32> {par.seeds = {tp = #par.seed<"analysis" "" of ["up@1", "bias@0", "down@0"]>}, par.split = #par.place<[4, 16 @tp]>}
    train.parameter @bias : tensor<16xf32> {..., par.split = #par.place<[16 @tp]>}
    train.parameter @down : tensor<16x4xf32> {..., par.split = #par.place<[16 @tp, 4]>}
    ```

    `par.seeds` records the dimensions that are split together.
  }];
  let dependentDialects = ["::partita::par::ParDialect", "::partita::tx::TxDialect"];
  let statistics = [Statistic<"families", "families", "families of dimensions that are split">,
                    Statistic<"replaced", "replaced", "ops that took another form">];
}

def PartitionSeedSequencePass : Pass<"partition-seed-sequence", "::mlir::ModuleOp"> {
  let summary = "splits the values that tensor parallelism leaves full, along the sequence";
  let description = [{
    Phase: partition.

    After a matmul with a partial sum over tp, each rank continues with its shard of the rows instead of all of them, through norms,
    dropout and residual sums up to the next op that tp splits already (Korthikanti et al., arXiv 2205.05198). The dimension follows
    from the rules: the outermost one that belongs to the data and not to a parameter, and is not the batch. If the results to gather
    have more bytes than the operands they are computed from, the operands are gathered instead. The pass inserts `narrow` and
    `all_gather` of full values, which `partition-propagate` and `partition-materialize` place.

    ```mlir
    %h = tx.matmul %a, %down                  // partial over tp once placed
    %r = tx.add %x, %h
    %y, %rstd = tx.rms_norm %r, %w eps 1.0e-6
    %u = tx.matmul %y, %up                    // up: [4, 16 @tp]
    // becomes
    %n = par.narrow %h over "tp" along 1
    %xn = par.narrow %x over "tp" along 1
    %r = tx.add %xn, %n
    %y, %rstd = tx.rms_norm %r, %w eps 1.0e-6
    %g = par.all_gather %y over "tp" along 1
    %u = tx.matmul %g, %up
    ```
  }];
  let options = [Option<"on", "on", "bool", "true", "split at all">];
  let dependentDialects = ["::partita::par::ParDialect"];
  let statistics = [Statistic<"openSums", "open-sums", "sums over ranks that are scattered">,
                    Statistic<"gathers", "gathers", "gathers inserted">,
                    Statistic<"narrows", "narrows", "narrows inserted">];
}

def PartitionSeedMovesPass : Pass<"partition-seed-moves", "::mlir::ModuleOp"> {
  let summary = "sends one shard per tensor-parallel rank from stage to stage, and gathers on arrival";
  let description = [{
    Phase: partition.

    All tensor-parallel ranks of a pipeline stage have the same activation in full, and would each send it. Instead each sends a shard,
    along the sequence, and the next stage gathers (Narayanan et al., arXiv 2104.04473, section 4.1). After a sum over ranks this costs
    nothing: the all-reduce becomes a reduce-scatter on one stage and an all-gather on the next. The cotangent goes back in the same way.
    Values that sequence parallelism has split already move as they are, and so do values that do not divide by the ranks.

    ```mlir
    %h = tx.matmul %a, %down                  // partial over tp once placed
    %r = tx.add %x, %h
    %m = pipe.move %r over <0 to 1>
    // becomes
    %h = tx.matmul %a, %down
    %xn = par.narrow %x over "tp" along 1
    %n = par.narrow %h over "tp" along 1
    %r = tx.add %xn, %n
    %s = pipe.move %r over <0 to 1>
    %m = par.all_gather %s over "tp" along 1
    ```
  }];
  let dependentDialects = ["::partita::par::ParDialect", "::partita::pipe::PipeDialect"];
  let statistics = [Statistic<"gathers", "gathers", "gathers inserted">,
                    Statistic<"narrows", "narrows", "narrows inserted">];
}

def PartitionSplitFormsPass : Pass<"partition-split-forms", "::mlir::ModuleOp"> {
  let summary = "replaces ops that cannot be split as they are with their split forms";
  let description = [{
    Phase: partition.

    If the seeds split a letter marked `!` or `^!`, the op is replaced by its split form. Cross-entropy over a split vocabulary becomes
    log-sum-exps per shard, their sum, and each shard's term of the loss; a norm of split rows becomes the sum of their squares, and
    multiplications by the factor computed from it.

    ```mlir
    %loss, %lse = tx.cross_entropy %logits, %labels ignore -100      // %logits: [8, 16 @tp]
    // becomes
    %lses = tx.log_sum_exp %logits : (tensor<8x16xf32>) -> tensor<8x2xf32>
    ...                                                              // %lse: the log of their sum
    %loss = tx.token_loss %logits, %labels, %lse ignore -100
    ```
  }];
  let dependentDialects = ["::partita::par::ParDialect", "::partita::tx::TxDialect"];
  let statistics = [Statistic<"replaced", "replaced", "ops replaced">];
}

def PartitionPropagatePass : Pass<"partition-propagate", "::mlir::ModuleOp"> {
  let summary = "propagates splits through the ops' rules to a fixpoint";
  let description = [{
    Phase: partition.

    Forward and backward, along letters: a split dimension splits its letter, and with it every
    dimension of that letter. The result is written on the ops and read by `partition-materialize`.

    ```mlir
    %y = tx.matmul %x, %w                                  // %x: [8 @dp, 4]
    // becomes
    %y = tx.matmul %x, %w {par.splits = [#par.place<[8 @dp, 6]>]}
    ```
  }];
  let statistics = [Statistic<"split", "split", "ops whose results are split">];
  let dependentDialects = ["::partita::par::ParDialect"];
}

def PartitionMaterializePass : Pass<"partition-materialize", "::mlir::ModuleOp"> {
  let summary = "puts placements into types, and inserts f and g where the rules need them";
  let description = [{
    Phase: partition.

    An operand that lacks a split letter must be replicated: an invariant one gets `f`, a parameter at its definition. A partial
    sum gets `g` if an op uses it that is not linear in it. All types become those of one rank's shards. Every inserted op gets a
    `#par.cause`: the op and the letter that need it, and the seed that split the letter.

    ```mlir
    %w = train.read @w : tensor<4x6xf32>
    %s = train.accumulate (%i = %x) : (tensor<3x8x4xf32>) -> tensor<f32> {
      %y = tx.matmul %i, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
      ...
    }
    train.minimize %s
    // becomes, where `partition-propagate` has split dimension 0 of %y over dp
    %w = train.read @w : tensor<4x6xf32>
    %f = par.f %w over "dp" : tensor<4x6xf32> -> tensor<4x6xf32, #par.place<[4, 6], replicated [dp]>>
    %s = train.accumulate (%i = %x) : ... -> tensor<f32, #par.place<[], partial [dp]>> {
      %y = tx.matmul %i, %f : (tensor<4x4xf32, #par.place<[8 @dp, 4]>>, ...) -> tensor<4x6xf32, #par.place<[8 @dp, 6]>>
      ...
    }
    %g = par.g %s over "dp" : tensor<f32, #par.place<[], partial [dp]>> -> tensor<f32>
    train.minimize %g
    ```
  }];
  let dependentDialects = ["::partita::par::ParDialect"];
  let statistics = [Statistic<"fInserted", "f", "conjugates f inserted">,
                    Statistic<"gInserted", "g", "conjugates g inserted">];
}

def SimplifyCollectivesPass : Pass<"simplify-collectives", "::mlir::ModuleOp"> {
  let summary = "removes collectives, or makes them cheaper, for the same values";
  let description = [{
    Phase: partition.

    The canonicalization patterns of the dialect `par`, before differentiation, so that only the remaining ops get backward halves.
    (Later, `canonicalize` applies them to the backward pass.) Also: sums are added before they are reduced,
    `g(a) + g(b) = g(a + b)`; branches that begin with small ops on one value share its `f`; and an op whose result is smaller than
    its gathered operand works on the shards.

    ```mlir
    %s = par.g %p over "tp"
    %n = par.narrow %s over "tp" along 1
    %w = par.all_gather %y over "tp" along 1
    %f = par.f %w over "tp"
    // becomes
    %n = par.reduce_scatter %p over "tp" along 1
    %f = par.all_gather %y over "tp" along 1          // replicated
    ```
  }];
  let statistics = [Statistic<"removed", "removed", "collectives and conjugates saved">];
  let dependentDialects = ["::partita::par::ParDialect", "::partita::tx::TxDialect"];
}

def PartitionVerifyPass : Pass<"partition-verify", "::mlir::ModuleOp"> {
  let summary = "checks the contract of the partition phase";
  let description = [{
    Phase: partition.

    Every shard has the size of the full value divided by the axes that split it; no annotation is left; no function returns or
    minimizes a partial sum. (The verifier of each op has checked its placements against its rule.) Notes of an error trace the
    placement of the value back to its seed.

    ```mlir
    train.minimize %x : tensor<f32, #par.place<[], partial [dp]>>
    // error: minimizes a partial sum over "dp"
    ```
  }];
  let dependentDialects = ["::partita::par::ParDialect"];
}

#endif // PARTITA_PARTITION_PASSES
