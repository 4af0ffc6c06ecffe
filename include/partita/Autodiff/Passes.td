//===- Passes.td - the backward pass ------------------------------------------------------------------===//

#ifndef PARTITA_AUTODIFF_PASSES
#define PARTITA_AUTODIFF_PASSES

include "mlir/Pass/PassBase.td"

def DifferentiatePass : Pass<"differentiate", "::mlir::ModuleOp"> {
  let summary = "replaces train.minimize with the backward pass and one train.update per parameter";
  let description = [{
    Phase: differentiate.

    Reverse mode: every op defines its gradient (DifferentiableInterface), `f` and `g` included, so the collectives of the backward pass
    follow from those of the forward pass. Values that `train.accumulate` captures get a gradient that the loop sums. The backward pass
    of the loop is a region of its own, and the forward region yields the values that it saves for it; constants, views and `f` are not
    saved but recomputed.

    ```mlir
    %w = train.read @w
    %f = par.f %w over "dp"
    %s = train.accumulate (%i = %x) : ... {
      %y = tx.matmul %i, %f
      ...
      train.yield %r
    }
    %loss = par.g %s over "dp"
    train.minimize %loss
    // becomes
    %w = train.read @w
    %f = par.f %w over "dp"
    %s, %df = train.accumulate (%i = %x) : ... {
      %y = tx.matmul %i, %f
      ...
      train.yield %r
    } backward (%j) {
      %part = tx.matmul_tn %j, %dy
      train.yield %part
    }
    %loss = par.g %s over "dp"
    %dw = par.all_reduce %df over "dp" because "gradient"
    train.update @w, %w by %dw
    ```
  }];
  let options = [
    Option<"accumulateType", "accumulate-type", "std::string", "\"float32\"",
           "the type in which 16-bit gradients are summed over micro-batches: float32, or their own">,
  ];
  let dependentDialects = ["::partita::tx::TxDialect", "::partita::par::ParDialect", "::partita::train::TrainDialect"];
  let statistics = [Statistic<"updates", "updates", "parameters with a gradient">];
}

def RecomputePass : Pass<"recompute", "::mlir::ModuleOp"> {
  let summary = "recomputes activations in the backward pass instead of saving them (activation checkpointing)";
  let description = [{
    Phase: differentiate.

    Shortens the list of values that `train.accumulate` saves for the backward pass.
    - `block`: a layer saves its inputs, and its backward pass begins by running the layer's forward ops again.
    - `selective`: ops that are cheap relative to their memory (norms, activations, rotations, softmax; no matmul, no collective) are
      recomputed right before their use, from values that are saved anyway.
    - `none`: only what costs nothing, such as silu(gate) in a gated MLP: an elementwise op of one value that is saved anyway and has the
      same shape, if only elementwise ops of the backward pass read its result. They read the saved value instead.

    With a `budget` (bytes), layers are recomputed one by one until the saved activations fit: by the policy or, if that is `none`, first
    selectively, then in full. A remark reports it if they cannot fit. With `partition`, each rank of tp saves only its shard of an input
    of a layer that all of them have in full (`zero.shard`), and gathers it for the recomputation. Clones read saved values through
    `train.barrier`; dropout's random numbers are counter-based, so a clone has the mask of its original.

    ```mlir
    %n = tx.exp %x
    %u = tx.matmul %n, %w
    ...
    train.yield %l ... saves %n, %u, %a, %l
    } backward (%x1, %n1, %u1, %a1, %dy) {
    ...
    %dw = tx.matmul_tn %n1, %du
    // becomes, with policy=selective
    %n = tx.exp %x
    %u = tx.matmul %n, %w
    ...
    train.yield %l ... saves %u, %l
    } backward (%x1, %u1, %dy) {
    ...
    %du = tx.mul %u1, ...
    %0 = train.barrier %x1
    %n2 = tx.exp %0
    %dw = tx.matmul_tn %n2, %du
    ```
  }];
  let options = [Option<"policy", "policy", "std::string", "\"none\"", "none, selective or block">,
                 Option<"budget", "budget", "int64_t", "0", "bytes of activations that may be saved for the backward pass; 0: all layers follow the policy">,
                 Option<"partition", "partition", "bool", "false", "each rank of tp saves only a shard of a layer's inputs">];
  let statistics = [Statistic<"recomputed", "recomputed", "ops recomputed">];
  let dependentDialects = ["::partita::train::TrainDialect", "::partita::zero::ZeroDialect"];
}

def GatherAgainPass : Pass<"gather-again", "::mlir::ModuleOp"> {
  let summary = "gathers values again for the backward pass instead of saving them";
  let description = [{
    Phase: differentiate.

    Instead of a full activation, a rank saves its shard for the backward pass, at the price of one more gather
    (Korthikanti et al., arXiv 2205.05198). Norms of a gathered activation are recomputed with it.

    ```mlir
    %g = par.all_gather %y over "tp" along 1
    %u = tx.matmul %g, %w
    // becomes, after differentiation
    %g = par.all_gather %y over "tp" along 1
    %u = tx.matmul %g, %w
    ...
    } backward (...) {                              // %y1 is what is saved of %y
    %du = tx.chain ...
    %g2 = par.all_gather %y1 over "tp" along 1 again
    %dw = tx.matmul_tn %g2, %du
    ```

    Gathered parameters are treated the same way, except those whose names match a pattern of `keep`, and all of them with
    FSDP's strategy shard-grad-op: these are saved for the backward pass. So are the classifier's weights, with
    which the forward pass ends and the backward pass begins, unless `always`. Of a parameter that is gathered between groups of
    data-parallel ranks and then within them (hpZ), the first gather is not repeated: its result, the secondary copy, is saved.
  }];
  let options = [Option<"strategy", "strategy", "std::string", "\"none\"", "FSDP's strategy">,
                 ListOption<"keep", "keep", "std::string",
                            "parameters that stay gathered from the forward to the backward pass: glob patterns over their names">,
                 Option<"always", "always", "bool", "false", "gather again the parameters that the backward pass begins with, too">,
                 Option<"hpz", "hpz", "int64_t", "1", "the ranks of a group within which hpZ gathers again; 1: no groups">];
  let dependentDialects = ["::partita::par::ParDialect"];
  let statistics = [Statistic<"gathered", "gathers", "gathers added">];
}

def ExpandConjugatesPass : Pass<"expand-conjugates", "::mlir::ModuleOp"> {
  let summary = "removes `f`, turns `g` into an all-reduce, and merges `replicated` into `invariant`";
  let description = [{
    Phase: differentiate.

    Their backward halves have been built, so only the forward halves are left.

    ```mlir
    %f = par.f %w over "dp" : tensor<4xf32> -> tensor<4xf32, #par.place<[4], replicated [dp]>>
    %e = tx.exp %f
    %l = par.g %p over "dp" : tensor<f32, #par.place<[], partial [dp]>> -> tensor<f32>
    // becomes
    %e = tx.exp %w
    %l = par.all_reduce %p over "dp" because "mean loss" : tensor<f32, #par.place<[], partial [dp]>> -> tensor<f32>
    ```
  }];
  let statistics = [Statistic<"dropped", "dropped", "f that were removed">,
                    Statistic<"reduced", "reduced", "g that became an all-reduce">];
  let dependentDialects = ["::partita::par::ParDialect"];
}

def ExpandRingPass : Pass<"expand-ring", "::mlir::ModuleOp"> {
  let summary = "writes attention in a ring out: a step per rank, and shifts of keys and values between them";
  let description = [{
    Phase: differentiate.

    Each rank begins with its own keys and values and passes them on: in step j it works with those of the rank j places before it, while the next
    ones travel. Steps in which no rank sees a key (a window that is shorter, blocks that are empty) are not written.

    ```mlir
    %out, %lse = tx.attention %q, %k, %v scale 0.5 causal ring "cp"
    // becomes, on two ranks
    %first = par.first_index of 8
    %next:2 = par.shift %k, %v over "cp" because "keys and values"
    %own = par.first_index of 8
    %o, %l = tx.attention_step %q, %k, %v at %first, %own scale 0.5 causal zero_hidden ring "cp"
    %other = par.first_index of 8 behind 1
    %out, %lse = tx.attention_step %q, %next#0, %next#1 onto %o, %l at %first, %other scale 0.5 causal ring "cp"
    ```

    In the backward pass, keys and values travel the same way again, and the sums of their gradients travel with them and then the shorter way
    home: without a window, as many shifts as those of the keys. A rank computes with its own keys last, while the gradients travel home, and the first shift stands at the beginning of the layer's backward
    pass, so that every transfer runs beside work.
  }];
  let statistics = [Statistic<"expanded", "expanded", "attentions written out">];
  let dependentDialects = ["::partita::par::ParDialect", "::partita::tx::TxDialect"];
}

def JoinSliceGradientsPass : Pass<"join-slice-gradients", "::mlir::ModuleOp"> {
  let summary = "replaces the sum of the padded gradients of slices that cover a value with their concatenation";
  let description = [{
    Phase: differentiate.

    Query, key and value are slices of one projection; each one's gradient is padded with zeros to the
    projection's size before the three are added.

    ```mlir
    %a = tx.pad %x [0, 0] by [1, 1] : tensor<2x3xf32> -> tensor<2x5xf32>
    %b = tx.pad %y [0, 3] by [1, 1] : tensor<2x2xf32> -> tensor<2x5xf32>
    %c = tx.add %b, %a
    // becomes
    %c = tx.concat %x, %y along 1
    ```
  }];
  let dependentDialects = ["::partita::tx::TxDialect"];
  let statistics = [Statistic<"joined", "joined", "sums that became concatenations">];
}

#endif // PARTITA_AUTODIFF_PASSES
