//===- Passes.td - kernels out of several ops -------------------------------------------------------===//

#ifndef PARTITA_FUSE_PASSES
#define PARTITA_FUSE_PASSES

include "mlir/Pass/PassBase.td"

def FuseClassifierPass : Pass<"fuse-classifier", "::mlir::ModuleOp"> {
  let summary = "a product and its cross-entropy, forward and backward, become one op";
  let description = [{
    Phase: fuse.

    The logits and their cotangent, tokens x vocabulary, are the largest tensors of most training steps;
    the one op's kernel makes them piece by piece. Needs the loss's cotangent in front of the loss, to which
    what computes it is moved, and nobody else who looks at the logits. A cross-entropy that is split over
    the vocabulary stays as it is.

    ```mlir
    %logits = tx.matmul_nt %x, %w
    %loss, %lse = tx.cross_entropy %logits, %labels ignore 3
    %dlogits = tx.cross_entropy_grad %logits, %labels, %lse, %dloss ignore 3
    %dx = tx.matmul %dlogits, %w
    %dw = tx.matmul_tn %dlogits, %x
    // becomes
    %loss, %dx, %dw = tx.classifier_loss_grad %x, %w, %labels, %dloss ignore 3
    ```

    Without the gradient, in evaluation, it becomes `tx.classifier_loss`.
  }];
  let dependentDialects = ["::partita::tx::TxDialect"];
  let statistics = [Statistic<"fused", "fused", "losses that became one with their product">];
}

def SplitReductionsPass : Pass<"split-reductions", "::mlir::ModuleOp"> {
  let summary = "a reduction over dimensions that are not neighbours becomes one per run of neighbours";
  let description = [{
    Phase: fuse.

    A kernel reduces one stretch of memory. Dimensions of size one stand in nobody's way.

    ```mlir
    %0 = tx.reduce_mean %x [0, 2, 3] : tensor<2x3x4x5xf32> -> tensor<3xf32>
    // becomes
    %1 = tx.reduce_mean %x [2, 3] : tensor<2x3x4x5xf32> -> tensor<2x3xf32>
    %0 = tx.reduce_mean %1 [0] : tensor<2x3xf32> -> tensor<3xf32>
    ```
  }];
  let dependentDialects = ["::partita::tx::TxDialect"];
  let statistics = [Statistic<"split", "split", "reductions that became several">];
}

def SinkReshapesPass : Pass<"sink-reshapes", "::mlir::ModuleOp"> {
  let summary = "elementwise ops move in front of the reshapes of their operands";
  let description = [{
    Phase: fuse.

    Exporters flatten batch and sequence around every product, so a bias and the activation or residual
    that follows stand on two sides of a reshape. A reshape costs nothing but hides the neighbour.

    ```mlir
    %0 = tx.reshape %x : tensor<8x4xf32> -> tensor<2x4x4xf32>
    %1 = tx.add %0, %y
    // becomes
    %0 = tx.reshape %y : tensor<2x4x4xf32> -> tensor<8x4xf32>
    %1 = tx.add %x, %0
    %2 = tx.reshape %1 : tensor<8x4xf32> -> tensor<2x4x4xf32>
    ```
  }];
  let dependentDialects = ["::partita::tx::TxDialect"];
  let statistics = [Statistic<"sunk", "sunk", "ops that moved in front of a reshape">];
}

def FuseResidualGradientsPass : Pass<"fuse-residual-gradients", "::mlir::ModuleOp"> {
  let summary = "a norm's cotangent is added to the residual branch's as it is computed";
  let description = [{
    Phase: fuse.

    ```mlir
    %dx, %dw, %db = tx.layer_norm_grad %x, %w, %mean, %rstd, %dy
    %0 = tx.add %residual, %dx
    // becomes
    %0, %dw, %db = tx.layer_norm_grad_add %x, %w, %mean, %rstd, %dy, %residual
    ```
  }];
  let dependentDialects = ["::partita::tx::TxDialect"];
  let statistics = [Statistic<"fused", "fused", "additions that became part of a norm's gradient">];
}

def FuseRotaryPass : Pass<"fuse-rotary", "::mlir::ModuleOp"> {
  let summary = "rotary position embedding is one kernel, forth and back";
  let description = [{
    Phase: fuse.

    Also where products are rounded between (casts). A transpose in front moves behind, where attention's own undoes it.

    ```mlir
    %0 = tx.mul %x, %cos
    %1 = tx.rotate_half %x
    %2 = tx.mul %1, %sin
    %3 = tx.add %0, %2
    // becomes
    %3 = tx.rotary %x, %cos, %sin
    ```
  }];
  let dependentDialects = ["::partita::tx::TxDialect"];
  let statistics = [Statistic<"fused", "fused", "rotary embeddings, or their cotangents">];
}

def FuseEpiloguesPass : Pass<"fuse-epilogues", "::mlir::ModuleOp"> {
  let summary = "on a GPU, what follows a product goes into its kernel";
  let description = [{
    Phase: fuse.

    A GELU (in the tanh form) whose argument the backward pass wants. So do the slope of a GELU behind `tx.matmul_nt`, and a bias's gradient
    (`tx.reduce_sum` of the cotangent) beside its weight's `tx.matmul_tn`.

    ```mlir
    %0 = tx.matmul %x, %w
    %1 = tx.broadcast %b : tensor<6xf32> -> tensor<8x6xf32>
    %2 = tx.add %0, %1
    %3 = tx.gelu_tanh %2
    return %3, %2
    // becomes, because %2 is used elsewhere too
    %3, %2 = tx.fused_product (%a = %x, %c = %w, %d = %b) : ... {
      %4 = tx.matmul_bias %a, %c plus %d
      %5 = tx.gelu_tanh %4
      tx.fused %5, %4
    }
    ```

    In front of `fuse-elementwise`, which would take the GELUs; those that more arithmetic follows are left to it, so
    that it is done in one loop.
    For the target `cuda` alone (`rt.target`): the CPU's runtime has no such kernels.
  }];
  let dependentDialects = ["::partita::tx::TxDialect"];
  let statistics = [Statistic<"gelus", "gelus", "GELUs that became part of a product">,
                    Statistic<"slopes", "slopes", "slopes of GELUs that did">,
                    Statistic<"biases", "biases", "gradients of biases that did">];
}

def FuseAddendsPass : Pass<"fuse-addends", "::mlir::ModuleOp"> {
  let summary = "on a GPU, what a product is added to goes into its kernel";
  let description = [{
    Phase: fuse.

    A residual, or the cotangent of a value that several products read, which is a sum of products. The kernel reads the
    addend where an addition would have read both and written a third tensor; it works in the addend's memory if that
    dies there. A bias in between goes along; reshapes are looked through.

    ```mlir
    %0 = tx.matmul %x, %w
    %1 = tx.broadcast %b : tensor<6xf32> -> tensor<8x6xf32>
    %2 = tx.add %0, %1
    %3 = tx.reshape %2 : tensor<8x6xf32> -> tensor<2x4x6xf32>
    %4 = tx.add %residual, %3
    // becomes
    %5 = tx.reshape %residual : tensor<2x4x6xf32> -> tensor<8x6xf32>
    %6 = tx.fused_product (%a = %x, %c = %w, %d = %b, %e = %5) : ... {
      %7 = tx.matmul_bias %a, %c plus %d
      %8 = tx.add %e, %7
      tx.fused %8
    }
    %4 = tx.reshape %6 : tensor<8x6xf32> -> tensor<2x4x6xf32>
    ```

    Behind `fuse-residual-gradients`, which gives an addition to a norm's gradient, and in front of
    `fuse-elementwise`, which would take it; one that more arithmetic follows is left to that.
    For the target `cuda` alone (`rt.target`): the CPU's products have no second matrix to add.
  }];
  let dependentDialects = ["::partita::tx::TxDialect"];
  let statistics = [Statistic<"fused", "fused", "additions that became part of a product">];
}

def FuseAccumulationPass : Pass<"fuse-accumulation", "::mlir::ModuleOp"> {
  let summary = "a weight's gradient is added to its sum by the product's kernel";
  let description = [{
    Phase: fuse.

    Saves a buffer of the weight's size, and writing and reading it, in each micro-batch. Behind the loop over
    micro-batches the product adds to what the loop has summed up; in it, to the sum so far. Sums of 32 bits take products
    of 16-bit numbers as they are, before they are rounded.

    ```mlir
    %sum = train.accumulate (%x = %xs, %dy = %dys) : (tensor<3x8x4xf32>, tensor<3x8x6xf32>) -> tensor<4x6xf32> {
      %0 = tx.matmul_tn %x, %dy
      train.yield %0
    }
    %1 = tx.matmul_tn %x3, %dy3
    %2 = tx.add %sum, %1
    // becomes
    %sum = train.accumulate (%x = %xs, %dy = %dys) : ... -> tensor<4x6xf32> onto (%so_far = 0) {
      %0 = tx.fused_product (%a = %x, %b = %dy, %c = %so_far) : ... {
        %3 = tx.matmul_tn %a, %b
        %4 = tx.add %c, %3
        tx.fused %4
      }
      train.yield %0
    }
    %2 = tx.fused_product (%a = %x3, %b = %dy3, %c = %sum) : ... {
    ```

    A bias's gradient that `fuse-epilogues` has put beside its weight's is added along. After it, and in front of
    `fuse-elementwise`, which would take the additions.
  }];
  let dependentDialects = ["::partita::tx::TxDialect"];
  let statistics = [Statistic<"fused", "fused", "gradients that became part of their sum">];
}

def FuseElementwisePass : Pass<"fuse-elementwise", "::mlir::ModuleOp"> {
  let summary = "one loop over elementwise ops that feed each other";
  let description = [{
    Phase: fuse.

    Saves writing and reading what stands between them. Nothing is computed twice: a value that others
    use too becomes one more result.

    ```mlir
    %0 = tx.add %x, %b : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %1 = tx.gelu_tanh %0 : (tensor<8x4xf32>) -> tensor<8x4xf32>
    // becomes, when %0 is used elsewhere too
    %2:2 = tx.fusion (%a = %x, %c = %b) : ... {
      %3 = tx.add %a, %c
      %4 = tx.gelu_tanh %3
      tx.fused %3, %4
    }
    ```
  }];
  let dependentDialects = ["::partita::tx::TxDialect"];
  let statistics = [Statistic<"kernels", "kernels", "fusions made">, Statistic<"fused", "fused", "ops in them">];
}

def FuseBiasPass : Pass<"fuse-bias", "::mlir::ModuleOp"> {
  let summary = "a bias that is added to a product goes into the product's kernel";
  let description = [{
    Phase: fuse.

    After `fuse-elementwise`, which takes a bias along with what follows it at no cost: here are those that
    nothing elementwise follows (query, key and value).

    ```mlir
    %0 = tx.matmul %x, %w
    %1 = tx.broadcast %b : tensor<6xf32> -> tensor<8x6xf32>
    %2 = tx.add %0, %1
    // becomes
    %2 = tx.matmul_bias %x, %w plus %b
    ```
  }];
  let dependentDialects = ["::partita::tx::TxDialect"];
  let statistics = [Statistic<"fused", "fused", "biases that became part of a product">];
}

#endif // PARTITA_FUSE_PASSES
