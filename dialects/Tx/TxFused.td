//===- TxFused.td - op table: kernels made of several ops ---------------------------------------------===//
//
// Created in the fuse phase, after differentiation: they have no gradient. The pass `fuse-elementwise`
// makes tx.fusion, `fuse-bias` the matmuls with a bias, `fuse-epilogues`, `fuse-addends` and `fuse-accumulation` the other
// matmul epilogues, `fuse-lookups` the lookups that add, `fuse-residual-gradients` the norms' gradients that add, `fuse-classifier` the loss of a matmul,
// `fuse-rotary` the rotary embedding; each becomes one kernel when lowered.
//
//===------------------------------------------------------------------------------------------------===//

#ifndef PARTITA_TX_FUSED
#define PARTITA_TX_FUSED

include "mlir/Interfaces/ControlFlowInterfaces.td"
include "dialects/Tx/TxBase.td"

def Tx_FusionOp : Op<Tx_Dialect, "fusion", [Pure, IsolatedFromAbove, SingleBlockImplicitTerminator<"FusedOp">]> {
  let summary = "elementwise ops over one shape, computed in one loop";
  let description = [{
    The region has one argument per operand and only elementwise ops, casts and splat constants; all tensors
    have one shape and placement (a repeated operand comes through a tx.broadcast before it, which costs nothing
    where a kernel reads it). Created by `fuse-elementwise`; becomes a kernel.

        %z, %y = tx.fusion (%a = %x, %b = %bias) : (tensor<8x4xf32>, tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
          %0 = tx.add %a, %b : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
          %1 = tx.gelu_tanh %0 : (tensor<8x4xf32>) -> tensor<8x4xf32>
          tx.fused %0, %1 : tensor<8x4xf32>, tensor<8x4xf32>
        }
  }];
  let arguments = (ins Variadic<Tx_Tensor>:$inputs);
  let results = (outs Variadic<Tx_Tensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Tx_FusedMatmulOp : Op<Tx_Dialect, "fused_matmul", [Pure, IsolatedFromAbove, SingleBlockImplicitTerminator<"FusedOp">]> {
  let summary = "a matmul with its epilogue";
  let description = [{
    The region contains the fused ops, each with its rule, so they keep their placements. It has one argument per operand and
    one of these forms:

        %pre = tx.matmul_bias %a, %b plus %bias        // or matmul_nt_bias
        %y = tx.gelu_tanh %pre
        tx.fused %y, %pre                              // or %y alone: the backward pass needs %pre
        // the cotangent of a GELU, times the GELU's slope
        %dy = tx.matmul_nt %g, %w                      // or matmul
        %dx = tx.gelu_tanh_grad %pre, %dy
        %db = tx.reduce_sum %dx [0]                    // optional: over all rows
        tx.fused %dx, %db
        // a matmul, optionally with a bias, added to another value: a residual, the matmul of another operand
        %y = tx.matmul_bias %a, %b plus %bias          // or any other except matmul_tn
        %sum = tx.add %so_far, %y
        tx.fused %sum
        // a weight's gradient, its bias's, or both, added to a running sum
        %dw = tx.matmul_tn %x, %dy                     // or %dy, %x
        %db = tx.reduce_sum %dy [0]                    // optional: over all rows
        %wide = tx.cast %dw                            // if the sum is wider
        %sum = tx.add %so_far, %wide                   // optional; with a bias's gradient, for both
        tx.fused %sum, %db

    A matmul of the last two forms may read operands in 8 bits (`tx.scaled_matmul_nt`; a weight's gradient without its bias's).
    Nothing is rounded in between, unless tuning finds separate kernels faster. Created by `fuse-epilogues`,
    `fuse-addends` and `fuse-accumulation`; becomes a kernel, which adds in place at the last use of the running sum.
  }];
  let arguments = (ins Variadic<Tx_Tensor>:$inputs);
  let results = (outs Variadic<Tx_Tensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Tx_FusedLookupOp : Op<Tx_Dialect, "fused_lookup", [Pure, IsolatedFromAbove, DeclareOpInterfaceMethods<LookupInterface>,
                                                       SingleBlockImplicitTerminator<"FusedOp">]> {
  let summary = "a lookup, or its gradient, added to another value";
  let description = [{
    As in `tx.fused_matmul`, the fused ops keep their rules in the region, which has one of these forms:

        %rows = tx.embedding %table, %ids              // of tokens
        %sum = tx.add %rows, %addend                   // positions, perhaps repeated (tx.broadcast)
        tx.fused %sum
        // the gradient of a table, added to that of another use of it: a classifier with the same weight
        %dtable = tx.embedding_grad %ids, %dy
        %sum = tx.add %so_far, %dtable
        tx.fused %sum

    Nothing is rounded in between. Created by `fuse-lookups`; becomes a kernel, which of a gradient reads and writes only the rows that
    ids name, in place at the last use of the other gradient.
  }];
  let arguments = (ins Variadic<Tx_Tensor>:$inputs);
  let results = (outs Variadic<Tx_Tensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Tx_FusedOp : Op<Tx_Dialect, "fused", [Pure, Terminator, ParentOneOf<["FusionOp", "FusedMatmulOp", "FusedLookupOp"]>]> {
  let summary = "the results of a fusion";
  let arguments = (ins Variadic<Tx_Tensor>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
  let builders = [OpBuilder<(ins), [{}]>];
}

class Tx_BiasedMatmul<string mnemonic> : Tx_InferredOp<mnemonic> {
  let precision = "Low";
  let arguments = (ins Tx_Float:$a, Tx_Float:$b, Tx_Float:$bias);
  let results = (outs Tx_Float:$result);
  let assemblyFormat = "$a `,` $b `plus` $bias attr-dict `:` functional-type(operands, results)";
}
def Tx_MatMulBiasOp : Tx_BiasedMatmul<"matmul_bias"> {
  let summary = "a @ b + bias: a [..., k], b [k, n], bias [n]";
  let description = "The matmul cannot be split along k: the bias would be added on every rank.";
  let shardRule = "* k^, k^ n, n -> * n";
}
def Tx_MatMulNTBiasOp : Tx_BiasedMatmul<"matmul_nt_bias"> {
  let summary = "a @ b^T + bias: a [..., k], b [n, k], bias [n]";
  let description = "The matmul cannot be split along k: the bias would be added on every rank.";
  let shardRule = "* k^, n k^, n -> * n";
}

def Tx_LayerNormGradAddOp : Tx_InferredOp<"layer_norm_grad_add", [],
    "::mlir::getElementTypeOrSelf(operands[0]), ::mlir::getElementTypeOrSelf(operands[1]), ::mlir::getElementTypeOrSelf(operands[1]), ::mlir::getElementTypeOrSelf(operands[0])"> {
  let summary = "tx.layer_norm_grad with `add`, the residual branch's cotangent, added to dx";
  let description = [{
    The sums include `add`. Created by `fuse-residual-gradients`; becomes a kernel that adds in place at the last use of `add`.
  }];
  let shardRule = "*+ n^, n^, *+, *+, *+ n^, *+ n^ -> * n^, n^, n^, n^";
  let arguments = (ins Tx_Float:$x, Tx_Float:$w, Tx_Float:$mean, Tx_Float:$rstd, Tx_Float:$dy, Tx_Float:$add);
  let results = (outs Tx_Float:$dx, Tx_Float:$dw, Tx_Float:$db, Tx_Float:$sums);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Tx_RmsNormGradAddOp : Tx_InferredOp<"rms_norm_grad_add", [],
    "::mlir::getElementTypeOrSelf(operands[0]), ::mlir::getElementTypeOrSelf(operands[1])"> {
  let summary = "tx.rms_norm_grad with `add`, the residual branch's cotangent, added to dx";
  let description = "Created by `fuse-residual-gradients`; becomes a kernel that adds in place at the last use of `add`.";
  let shardRule = "*+ n^, n^, *+, *+ n^, *+ n^ -> * n^, n^";
  let arguments = (ins Tx_Float:$x, Tx_Float:$w, Tx_Float:$rstd, Tx_Float:$dy, Tx_Float:$add);
  let results = (outs Tx_Float:$dx, Tx_Float:$dw);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Tx_RotaryOp : Tx_InferredOp<"rotary"> {
  let summary = "x cos + tx.rotate_half(x) sin, or with `back` x cos - tx.rotate_half(x sin)";
  let description = [{
    Rotary position embedding (Su et al., arXiv 2104.09864); `back` is its transpose, for cotangents. All operands have one
    shape; repeated angles come through a tx.broadcast, which costs nothing. Created by `fuse-rotary`;
    becomes a kernel that reads x on any layout of rows, computes in float and rounds once.
  }];
  let shardRule = "~* n^, * n^, * n^ -> * n^";
  let arguments = (ins Tx_Float:$x, Tx_Float:$cos, Tx_Float:$sin, UnitAttr:$interleaved, UnitAttr:$back);
  let results = (outs Tx_Float:$result);
  let assemblyFormat = [{
    $x `,` $cos `,` $sin (`interleaved` $interleaved^)? (`back` $back^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

//===------------------------------------------------------------------------------------------------===//
// The loss of a matmul. Kernels go over blocks of tokens and of the vocabulary: the logits of all tokens, a
// large model's largest tensor, never exist (Hsu et al., arXiv 2410.10989).
//===------------------------------------------------------------------------------------------------===//

def Tx_ClassifierLossOp : Tx_InferredOp<"classifier_loss", [LookupInterface], "::partita::tx::statisticElement(operands[0])"> {
  let summary = "tx.cross_entropy of x @ w^T: x [..., k], w [n, k], labels [...] -> loss [...]";
  let precision = "Exact";
  let description = "Created by `fuse-classifier` where no gradient is needed: evaluation.";
  let shardRule = "* k^, n^ k^, * -> *";
  let arguments = (ins Tx_Float:$x, Tx_Float:$w, Tx_Int:$labels, I64Attr:$ignore_index);
  let results = (outs Tx_Float:$loss);
  let assemblyFormat = "$x `,` $w `,` $labels `ignore` $ignore_index attr-dict `:` functional-type(operands, results)";
  let moreDeclarations = Tx_Lookup<"getLabels", "getW", "0", "getIgnoreIndex()">.declarations;
}
def Tx_ClassifierLossGradOp : Tx_InferredOp<"classifier_loss_grad", [LookupInterface],
    "::partita::tx::statisticElement(operands[0]), ::mlir::getElementTypeOrSelf(operands[0]), ::mlir::getElementTypeOrSelf(operands[1])"> {
  let summary = "tx.classifier_loss together with the cotangents of x and w";
  let matmuls = ["", "", ""];
  let gradientMatmuls = 2;
  let precision = "Exact";
  let description = [{
    Computes the forward and the backward pass at once, because the loss's cotangent `dloss` (scale / count of
    tokens) is known before the forward pass. Created by `fuse-classifier`.
  }];
  let shardRule = "*+ k^, n^ k^, *+, *+ -> *, * k^, n^ k^";
  let arguments = (ins Tx_Float:$x, Tx_Float:$w, Tx_Int:$labels, Tx_Float:$dloss, I64Attr:$ignore_index);
  let results = (outs Tx_Float:$loss, Tx_Float:$dx, Tx_Float:$dw);
  let assemblyFormat = "operands `ignore` $ignore_index attr-dict `:` functional-type(operands, results)";
  let moreDeclarations = Tx_Lookup<"getLabels", "getW", "0", "getIgnoreIndex()">.declarations;
}

#endif // PARTITA_TX_FUSED
