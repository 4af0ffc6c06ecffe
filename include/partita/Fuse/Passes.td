//===- Passes.td - several ops in one kernel -------------------------------------------------------===//

#ifndef PARTITA_FUSE_PASSES
#define PARTITA_FUSE_PASSES

include "mlir/Pass/PassBase.td"

def SplitReductionsPass : Pass<"split-reductions", "::mlir::ModuleOp"> {
  let summary = "splits a reduction over dimensions that are not adjacent into one per run of adjacent ones";
  let description = [{
    Phase: fuse.

    A kernel reduces contiguous memory. Dimensions of size one do not matter.

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

def FuseClassifierPass : Pass<"fuse-classifier", "::mlir::ModuleOp"> {
  let summary = "fuses a matmul and its cross-entropy, forward and backward, into one op";
  let description = [{
    Phase: fuse.

    The logits and their cotangent, tokens x vocabulary, are the largest tensors of most training steps; the fused kernel computes them
    block by block. The loss's cotangent must be available before the loss (the ops that compute it are moved there), and nothing else
    may use the logits. A cross-entropy that is split over the vocabulary stays as it is.

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
  let statistics = [Statistic<"fused", "fused", "losses fused with their matmul">];
}

def FuseRotaryPass : Pass<"fuse-rotary", "::mlir::ModuleOp"> {
  let summary = "fuses rotary position embedding into one kernel, forward and backward";
  let description = [{
    Phase: fuse.

    Casts may lie in between. A transpose before the embedding moves after it, where it cancels with that of
    attention.

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

def SlicePositionsPass : Pass<"slice-positions", "::mlir::ModuleOp"> {
  let summary = "reads rows of a table by consecutive ids as a slice";
  let description = [{
    Phase: fuse.

    Position embeddings: the slice is a view of the table, which the next kernel reads; the gradient of the table is the cotangent, with
    zeros for rows beyond it. A table that is split by rows keeps the lookup, and so do ids that only a run knows.

    ```mlir
    %0 = tx.iota 0.0, 1.0 : tensor<4xi64>
    %1 = tx.embedding %table, %0
    // becomes
    %1 = tx.slice %table [0, 0] by [1, 1] : tensor<6x8xf32> -> tensor<4x8xf32>
    ```
  }];
  let dependentDialects = ["::partita::tx::TxDialect"];
  let statistics = [Statistic<"sliced", "sliced", "lookups, or their gradients, that became slices">];
}

def SinkReshapesPass : Pass<"sink-reshapes", "::mlir::ModuleOp"> {
  let summary = "moves elementwise ops before the reshapes of their operands";
  let description = [{
    Phase: fuse.

    Exporters flatten batch and sequence around every matmul, so there is a reshape between a bias and the activation or residual
    that follows. A reshape costs nothing, but it prevents fusion.

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
  let statistics = [Statistic<"sunk", "sunk", "ops moved before a reshape">];
}

def FuseResidualGradientsPass : Pass<"fuse-residual-gradients", "::mlir::ModuleOp"> {
  let summary = "fuses the addition of the residual branch's cotangent into a norm's gradient";
  let description = [{
    Phase: fuse.

    ```mlir
    %dx, %dw, %db, %sums = tx.layer_norm_grad %x, %w, %mean, %rstd, %dy
    %0 = tx.add %residual, %dx
    // becomes
    %0, %dw, %db, %sums = tx.layer_norm_grad_add %x, %w, %mean, %rstd, %dy, %residual
    ```
  }];
  let dependentDialects = ["::partita::tx::TxDialect"];
  let statistics = [Statistic<"fused", "fused", "additions that became part of a norm's gradient">];
}

def FuseNormSumsPass : Pass<"fuse-norm-sums", "::mlir::ModuleOp"> {
  let summary = "makes a layer norm's gradient also compute the gradient of the bias before the norm";
  let description = [{
    Phase: fuse.

    If a matmul's bias is a term of a norm's input, the bias's gradient is the sum of the rows of the norm's dx, which includes the
    residual branch's. The kernel has them in registers, so no second pass reads them for the sum.

    ```mlir
    %dx, %dw, %db, %sums = tx.layer_norm_grad_add %x, %w, %mean, %rstd, %dy, %residual
    %0 = tx.reduce_sum %dx [0]
    return %dx, %dw, %db, %0
    // becomes
    %dx, %dw, %db, %sums = tx.layer_norm_grad_add %x, %w, %mean, %rstd, %dy, %residual
    return %dx, %dw, %db, %sums
    ```

    Runs after `fuse-residual-gradients`, whose ops have the sums of both branches, and before `fuse-epilogues`, which would fuse them
    with the gradient of the weight. 16-bit sums that are added in 32 bits are left to the latter, which rounds nothing before it adds.
  }];
  let dependentDialects = ["::partita::tx::TxDialect"];
  let statistics = [Statistic<"fused", "fused", "sums that a norm's gradient computes">];
}

def FuseAttentionSumsPass : Pass<"fuse-attention-sums", "::mlir::ModuleOp"> {
  let summary = "makes attention's gradient also compute the gradients of the biases of its projections";
  let description = [{
    Phase: fuse.

    The gradient of the bias of a projection to q, k and v is the sum of the rows of their cotangents. Kernels on tensor cores have these in
    registers, so no second pass reads them for the sum. The projections may be packed in one, in whatever order, or apart.

    ```mlir
    %dq, %dk, %dv = tx.attention_grad %q, %k, %v, %out, %lse, %dout scale 0.5 causal
    %0 = tx.reshape %dv : tensor<2x4x3x4xbf16> -> tensor<2x4x12xbf16>
    %1 = tx.reshape %dk : tensor<2x4x3x4xbf16> -> tensor<2x4x12xbf16>
    %2 = tx.reshape %dq : tensor<2x4x3x4xbf16> -> tensor<2x4x12xbf16>
    %3 = tx.concat %2, %1, %0 along 2
    %4 = tx.reshape %3 : tensor<2x4x36xbf16> -> tensor<8x36xbf16>
    %5 = tx.reduce_sum %4 [0]
    return %4, %5
    // becomes
    %dq, %dk, %dv, %sums:3 = tx.attention_grad %q, %k, %v, %out, %lse, %dout scale 0.5 causal sums
    %0 = tx.reshape %dv : tensor<2x4x3x4xbf16> -> tensor<2x4x12xbf16>
    %1 = tx.reshape %dk : tensor<2x4x3x4xbf16> -> tensor<2x4x12xbf16>
    %2 = tx.reshape %dq : tensor<2x4x3x4xbf16> -> tensor<2x4x12xbf16>
    %3 = tx.concat %2, %1, %0 along 2
    %4 = tx.reshape %3 : tensor<2x4x36xbf16> -> tensor<8x36xbf16>
    %5 = tx.reshape %sums#0 : tensor<3x4xbf16> -> tensor<12xbf16>
    %6 = tx.reshape %sums#1 : tensor<3x4xbf16> -> tensor<12xbf16>
    %7 = tx.reshape %sums#2 : tensor<3x4xbf16> -> tensor<12xbf16>
    %8 = tx.concat %5, %6, %7 along 0
    return %4, %8
    ```

    Runs before `fuse-quantize-sums` and `fuse-epilogues`, which would fuse the sums with what reads the cotangents. 16-bit sums that are added
    in 32 bits are left to the latter, which rounds nothing before it adds.
  }];
  let dependentDialects = ["::partita::tx::TxDialect"];
  let statistics = [Statistic<"fused", "fused", "sums that attention's gradient computes">];
}

def FuseQuantizeSumsPass : Pass<"fuse-quantize-sums", "::mlir::ModuleOp"> {
  let summary = "makes the kernel that quantizes a cotangent also compute the gradient of a bias";
  let description = [{
    Phase: fuse.

    With `--precision fp8` the matmuls of a layer read its cotangent in 8 bits. The kernel that quantizes and transposes it (`transpose-fp8`)
    has it in registers, so no second pass reads it for the sum of its rows.

    ```mlir
    %q, %qt = amp.quantize %dy by %scales[0] in f8E5M2 : ... -> rows tensor<32x48xf8E5M2> columns tensor<48x32xf8E5M2>
    %0 = tx.reduce_sum %dy [0]
    // becomes
    %q, %qt, %0 = amp.quantize %dy by %scales[0] in f8E5M2 : ... -> rows tensor<32x48xf8E5M2> columns tensor<48x32xf8E5M2> sums tensor<48xbf16>
    ```

    Runs after `fuse-norm-sums`: a norm's kernel has sums at no cost.
  }];
  let dependentDialects = ["::partita::tx::TxDialect", "::partita::amp::AmpDialect"];
  let statistics = [Statistic<"fused", "fused", "sums that a quantization computes">];
}

def FuseEpiloguesPass : Pass<"fuse-epilogues", "::mlir::ModuleOp"> {
  let summary = "on a GPU, fuses the epilogue of a matmul into its kernel";
  let description = [{
    Phase: fuse.

    Fuses a GELU (in the tanh form), with its argument if the backward pass needs it, the slope of a GELU after `tx.matmul_nt`, and the gradient
    of a bias (`tx.reduce_sum` of the cotangent): with the slope, if that makes the cotangent, else with the `tx.matmul_tn` of its weight.

    ```mlir
    %0 = tx.matmul %x, %w
    %1 = tx.broadcast %b : tensor<6xf32> -> tensor<8x6xf32>
    %2 = tx.add %0, %1
    %3 = tx.gelu_tanh %2
    return %3, %2
    // becomes, because %2 is used elsewhere too
    %3, %2 = tx.fused_matmul (%a = %x, %c = %w, %d = %b) : ... {
      %4 = tx.matmul_bias %a, %c plus %d
      %5 = tx.gelu_tanh %4
      tx.fused %5, %4
    }
    ```

    Runs before `fuse-elementwise`, which would fuse the GELUs; those followed by more arithmetic are left to it. Only for the target
    `cuda` (`rt.target`): the CPU runtime has no such kernels.
  }];
  let dependentDialects = ["::partita::tx::TxDialect"];
  let statistics = [Statistic<"gelus", "gelus", "GELUs fused into a matmul">,
                    Statistic<"slopes", "slopes", "slopes of GELUs fused">,
                    Statistic<"biases", "biases", "gradients of biases fused">];
}

def FuseAddendsPass : Pass<"fuse-addends", "::mlir::ModuleOp"> {
  let summary = "on a GPU, fuses an addition to a matmul's result into its kernel";
  let description = [{
    Phase: fuse.

    The addend is a residual, or another term of the cotangent of a value that several matmuls use. The kernel reads the addend, while
    a separate addition would read both terms and write a third tensor; it is in-place if this is the last use of the addend. A bias in
    between is fused, too; reshapes are looked through.

    ```mlir
    %0 = tx.matmul %x, %w
    %1 = tx.broadcast %b : tensor<6xf32> -> tensor<8x6xf32>
    %2 = tx.add %0, %1
    %3 = tx.reshape %2 : tensor<8x6xf32> -> tensor<2x4x6xf32>
    %4 = tx.add %residual, %3
    // becomes
    %5 = tx.reshape %residual : tensor<2x4x6xf32> -> tensor<8x6xf32>
    %6 = tx.fused_matmul (%a = %x, %c = %w, %d = %b, %e = %5) : ... {
      %7 = tx.matmul_bias %a, %c plus %d
      %8 = tx.add %e, %7
      tx.fused %8
    }
    %4 = tx.reshape %6 : tensor<8x6xf32> -> tensor<2x4x6xf32>
    ```

    Runs after `fuse-residual-gradients`, which fuses additions into gradients of norms, and before `fuse-elementwise`, which would fuse
    this one; an addition followed by more arithmetic is left to it. Only for the target `cuda` (`rt.target`): CPU matmuls have no
    addend.
  }];
  let dependentDialects = ["::partita::tx::TxDialect"];
  let statistics = [Statistic<"fused", "fused", "additions fused into a matmul">];
}

def FuseAccumulationPass : Pass<"fuse-accumulation", "::mlir::ModuleOp"> {
  let summary = "makes the kernel of a weight's gradient add to the gradient's sum";
  let description = [{
    Phase: fuse.

    Saves a buffer of the weight's size, and a write and a read of it per micro-batch. After the loop over micro-batches the matmul adds
    to the loop's sum; in the loop, to the sum so far. 32-bit sums take the result of a 16-bit matmul before it is rounded.

    ```mlir
    %sum = train.accumulate (%x = %xs, %dy = %dys) : (tensor<3x8x4xf32>, tensor<3x8x6xf32>) -> tensor<4x6xf32> {
      %0 = tx.matmul_tn %x, %dy
      train.yield %0
    }
    %1 = tx.matmul_tn %x3, %dy3
    %2 = tx.add %sum, %1
    // becomes
    %sum = train.accumulate (%x = %xs, %dy = %dys) : ... -> tensor<4x6xf32> onto (%so_far = 0) {
      %0 = tx.fused_matmul (%a = %x, %b = %dy, %c = %so_far) : ... {
        %3 = tx.matmul_tn %a, %b
        %4 = tx.add %c, %3
        tx.fused %4
      }
      train.yield %0
    }
    %2 = tx.fused_matmul (%a = %x3, %b = %dy3, %c = %sum) : ... {
    ```

    The gradient of a bias that `fuse-epilogues` has fused with that of its weight is added, too. Runs after that pass and before
    `fuse-elementwise`, which would fuse the additions.
  }];
  let dependentDialects = ["::partita::tx::TxDialect"];
  let statistics = [Statistic<"fused", "fused", "gradients added to their sum by a matmul">];
}

def FuseLookupsPass : Pass<"fuse-lookups", "::mlir::ModuleOp"> {
  let summary = "fuses an addition into the kernel of a lookup, or of its gradient";
  let description = [{
    Phase: fuse.

    Tokens plus positions are written once, by the lookup. The gradient of a table whose weight a classifier shares is added to the
    classifier's: the kernel reads and writes only the rows that ids name, where a table of its own would be zeroed, written and read.

    ```mlir
    %0 = tx.embedding %table, %ids
    %1 = tx.broadcast %rows
    %2 = tx.add %1, %0
    // becomes
    %0 = tx.broadcast %rows
    %1 = tx.fused_lookup (%a = %table, %b = %ids, %c = %0) : ... {
      %2 = tx.embedding %a, %b
      %3 = tx.add %c, %2
      tx.fused %3
    }
    ```

    Runs before `fuse-elementwise`, which would fuse the additions; a sum of rows that only arithmetic reads is left to it. A row's sum is
    complete before it is added, so 32-bit results have the bits of the separate ops; 16-bit ones are rounded once instead of twice.
  }];
  let dependentDialects = ["::partita::tx::TxDialect"];
  let statistics = [Statistic<"fused", "fused", "additions fused into a lookup or its gradient">];
}

def FuseElementwisePass : Pass<"fuse-elementwise", "::mlir::ModuleOp"> {
  let summary = "fuses elementwise ops that feed each other, or read the same values, into one loop";
  let description = [{
    Phase: fuse.

    Saves writing and reading the values in between. Nothing is computed twice: a value with other users becomes another result. Ops
    that read the same value are fused where the later one can move up to the earlier one without holding more memory.

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
  let statistics = [Statistic<"kernels", "kernels", "fusions made">, Statistic<"fused", "fused", "ops fused">];
}

def FuseBiasPass : Pass<"fuse-bias", "::mlir::ModuleOp"> {
  let summary = "fuses a bias into the kernel of its matmul";
  let description = [{
    Phase: fuse.

    Runs after `fuse-elementwise`, which fuses a bias with the elementwise ops that follow it at no cost; this pass fuses the others
    (query, key and value).

    ```mlir
    %0 = tx.matmul %x, %w
    %1 = tx.broadcast %b : tensor<6xf32> -> tensor<8x6xf32>
    %2 = tx.add %0, %1
    // becomes
    %2 = tx.matmul_bias %x, %w plus %b
    ```
  }];
  let dependentDialects = ["::partita::tx::TxDialect"];
  let statistics = [Statistic<"fused", "fused", "biases fused into a matmul">];
}

#endif // PARTITA_FUSE_PASSES
