//===- Passes.td - phase raise, in running order ----------------------------------------------------===//
//
// Exporters write norms, activations, rotary embedding and attention as graphs of small operations, in many spellings. These
// passes recognize them by the function that they compute: a candidate is a subgraph with the right inputs, and is accepted
// if the interpreter, in double precision and on random inputs, finds it equal to the op that replaces it. Isomorphic
// candidates (a model's layers) are computed once.
//
// With `remarks`, each pass reports the ops that it raised, and those that it nearly raised with the reason why
// not, at the locations of the ONNX nodes.
//
//===------------------------------------------------------------------------------------------------===//

#ifndef PARTITA_RAISE_PASSES
#define PARTITA_RAISE_PASSES

include "mlir/Pass/PassBase.td"

class Raise_Pass<string flag> : Pass<flag, "::mlir::func::FuncOp"> {
  let dependentDialects = ["::partita::tx::TxDialect", "::partita::par::ParDialect", "::mlir::func::FuncDialect"];
  let options = [
    Option<"remarks", "remarks", "bool", "false", "reports the ops that were raised, and those that nearly were and why not">,
  ];
  let statistics = [
    Statistic<"numRaised", "raised", "composites replaced with one op">,
    Statistic<"numMissed", "nearly raised", "composites that look like an op but do not compute it">,
    Statistic<"numChecks", "numeric checks", "candidates evaluated; isomorphic ones once">,
  ];
}

def RaiseLayerNorm : Raise_Pass<"raise-layer-norm"> {
  let summary = "raises layer normalization in any spelling to tx.layer_norm";
  let description = [{
    Phase: raise.

    Starts at a `tx.sqrt`, `tx.rsqrt` or `tx.pow` by a half, finds the values that post-dominate it, and for
    each of these the subgraph with one tensor x and at most two row vectors as inputs. The row vectors
    become weight and bias in whichever order the numbers agree.

    ```mlir
    %m = tx.reduce_mean %x [2]
    %d = tx.sub %x, %mb
    %v = tx.reduce_mean %dd [2]
    %s = tx.sqrt %ve
    %n = tx.div %d, %sb
    %nw = tx.mul %n, %wb
    %y = tx.add %nw, %bb
    // becomes
    %y, %mean, %rstd = tx.layer_norm %x, %w, %b eps 1.0e-05
    ```
  }];
}

def RaiseRmsNorm : Raise_Pass<"raise-rms-norm"> {
  let summary = "raises root-mean-square normalization in any spelling to tx.rms_norm";
  let description = [{
    Phase: raise.

    Like `raise-layer-norm`, which runs before it, with one tensor x and at most one row vector: the weight,
    multiplied before or after the division by the root.

    ```mlir
    %s = tx.mul %x, %x
    %m = tx.reduce_mean %s [2]
    %e = tx.add %m1, %eps
    %r = tx.rsqrt %e
    %n = tx.mul %x, %rb
    %y = tx.mul %wb, %n
    // becomes
    %y, %rstd = tx.rms_norm %x, %w eps 1.0e-06
    ```
  }];
}

def RaiseActivation : Raise_Pass<"raise-activation"> {
  let summary = "raises GELU and SiLU in any spelling to tx.gelu, tx.gelu_tanh, tx.quick_gelu or tx.silu";
  let description = [{
    Phase: raise.

    Starts at a `tx.erf`, `tx.tanh`, `tx.sigmoid` or `tx.exp` and finds the elementwise subgraphs around it that are
    functions of one tensor. If such a function equals x Phi(x), its tanh approximation, x sigmoid(1.702 x) or x
    sigmoid(x), it is replaced, however it is associated. If one constant prevents that, the remark names it.

    ```mlir
    %hx = tx.mul %x, %half
    %x3 = tx.pow %x, %three
    %cx3 = tx.mul %x3, %c      // 0.044715
    %sum = tx.add %x, %cx3
    %u = tx.mul %sum, %r       // 0.79788
    %t = tx.tanh %u
    %t1 = tx.add %t, %one
    %y = tx.mul %hx, %t1
    // becomes
    %y = tx.gelu_tanh %x
    ```
  }];
}

def RaiseRotateHalf : Raise_Pass<"raise-rotate-half"> {
  let summary = "raises the quarter turn of rotary position embedding to tx.rotate_half";
  let description = [{
    Phase: raise.

    There are two spellings: the halves of a row are swapped and the second one negated, or neighboring elements
    are swapped and the odd ones negated.

    ```mlir
    %a = tx.slice %x [0, 0, 0] by [1, 1, 1] : tensor<2x3x8xf32> -> tensor<2x3x4xf32>
    %b = tx.slice %x [0, 0, 4] by [1, 1, 1] : tensor<2x3x8xf32> -> tensor<2x3x4xf32>
    %n = tx.neg %b
    %y = tx.concat %n, %a along 2
    // becomes
    %y = tx.rotate_half %x
    ```
  }];
}

def RaiseAttention : Raise_Pass<"raise-attention"> {
  let summary = "raises softmax(scale q k^T + mask) v to tx.attention";
  let description = [{
    Phase: raise.

    Starts at a `tx.softmax` between two `tx.batch_matmul`. The ops between the scores and the softmax are
    evaluated at every (query, key): if the result is scale * score, the key is visible; if it is below -9000,
    it is hidden. If all keys are visible, the op is attention; if exactly the keys up to the query are, or the
    last few of these, it is causal attention, without or with a window. A term that depends on an input, or is
    not a mask, becomes a bias if it is added to the scores, or if it hides them with a number below -1e30, to
    which a score adds nothing. Scales on q and k are collected, transposes and reshapes around q, k, v and the
    result are absorbed into the layout [b, s, h, d], and repeated heads of k and v are read where they are.
    A dropout of the softmax becomes the op's, which drops the same elements, if nothing else reads its operand
    and only reshapes and casts follow it.

    ```mlir
    %s = tx.batch_matmul %qt, %kt
    %scaled = tx.div %s, %four
    %masked = tx.select %mask, %scaled, %lowest
    %p = tx.softmax %masked
    %o = tx.batch_matmul %p, %vt
    // becomes
    %out, %lse = tx.attention %q, %k, %v scale 2.500000e-01 causal
    ```
  }];
}

def RaiseDocuments : Raise_Pass<"raise-documents"> {
  let options = [
    Option<"remarks", "remarks", "bool", "false", "reports the ops that were raised, and those that nearly were and why not">,
    Option<"recurring", "recurring", "bool", "false", "an id may come back after another document: masks stay biases">,
  ];
  let summary = "raises attention's mask of documents to first keys";
  let description = [{
    Phase: raise.

    A sequence may pack several documents; a model hides the others by comparing ids of documents, and `raise-attention` has added
    that mask as a bias. If the bias compares the ids of query and key, and depends on nothing else that is not known, it is
    evaluated for several ids: all the same, all different, and runs of random lengths. If it hides exactly the keys after the
    query, those of other documents, and perhaps those before a window, and adds nothing to the others, it is replaced by
    `causal`, `window` and `from`. Kernels then skip the tiles of other documents, and no mask is stored.

    A document's positions are then taken to be consecutive: an id that comes back after another document is an error of the run.
    With `recurring`, ids may come back, and masks stay biases.

    ```mlir
    %same = tx.equal %of_query, %of_key       // broadcast ids
    %seen = tx.and %causal, %same
    %seen4 = tx.reshape %seen
    %bias = tx.select %seen4, %zero, %low
    %o, %l = tx.attention %x, %x, %x bias %bias scale 0.5
    // becomes
    %first = tx.document_starts %ids
    %o, %l = tx.attention %x, %x, %x from %first scale 5.000000e-01 causal
    ```
  }];
}

def SparsifyAttention : Pass<"sparsify-attention", "::mlir::ModuleOp"> {
  let options = [
    ListOption<"layout", "layout", "std::string", "mode=MODE,KEY=VALUE...: DeepSpeed's keys of a sparse_attention block; empty: dense">,
  ];
  let statistics = [Statistic<"numSparse", "sparse", "self-attentions that got blocks">];
  let dependentDialects = ["::partita::tx::TxDialect"];
  let summary = "gives every self-attention the blocks of one of DeepSpeed's sparse layouts";
  let description = [{
    Phase: raise.

    Which blocks of scores are computed depends on the layout, the number of blocks and, with different_layout_per_head, the head.
    What the model's own masks hide stays hidden: a causal model with a bidirectional layout stays causal. Attention to other keys (of an
    encoder, or cached ones) stays dense, with a warning.

    Errors are located at the attention: a block that does not divide the sequence, a layout that does not fit it. Every mode computes the
    blocks on the diagonal, so that each token sees itself unless the model's own mask hides it (`check-visible-keys`).

    ```mlir
    %o, %l = tx.attention %x, %x, %x scale 0.5 causal
    // becomes, with layout=mode=fixed,block=2,attention=unidirectional
    %o, %l = tx.attention %x, %x, %x scale 0.5 causal blocks <2, [squares 0 to 8 by 4 below, columns 3 to 8 by 4 width 1 below]>
    ```
  }];
}

def CheckVisibleKeys : Pass<"check-visible-keys", "::mlir::func::FuncOp"> {
  let statistics = [Statistic<"numChecks", "checks", "biases evaluated; those that layers share once">];
  let dependentDialects = ["::partita::tx::TxDialect"];
  let summary = "refuses attention in which a query sees no key";
  let description = [{
    Phase: raise.

    A bias that depends on nothing is evaluated, with `causal`, `window` and `blocks`: at each query's own place and, where it does not see that, for
    all keys (2^27 elements at most; what is left is not checked). Errors, located at the attention, name the first query that sees no key:

    - the model's own mask is -inf at all of its keys: softmax is NaN. A query with `zero_hidden` yields zeros; one whose keys are all hidden by
      finite numbers yields a mean over them, as in the model;
    - the model's own mask hides all keys of the blocks that a sparse layout computes, but shows others, or hides these by finite numbers.

    Padding masks, which depend on inputs, are not known here. Programs do not change.

    ```mlir
    %b = tx.constant ...      // -inf for keys that are not before the query
    %o, %l = tx.attention %x, %x, %x bias %b scale 0.5
    // error: attention: query 0 sees no key
    ```
  }];
}

def RaiseBlocks : Raise_Pass<"raise-blocks"> {
  let options = [
    Option<"remarks", "remarks", "bool", "false", "reports the ops that were raised, and those that nearly were and why not">,
    Option<"packs", "packs", "int64_t", "-1", "pack-documents follows with this token, and reads the biases; -1: it does not">,
    Option<"ranks", "ranks", "int64_t", "1", "the ranks that may share a sequence in a ring: each gets whole blocks">,
  ];
  let summary = "lets self-attention skip the blocks of scores that its mask hides";
  let description = [{
    Phase: raise.

    A bias that depends on nothing (a sliding window to both sides, global tokens, documents of fixed places, patterns of their own per
    head) is evaluated in every element. If less than nine tenths of the blocks have a score that is not hidden, the op gets these as
    `blocks`; the largest of 128, 64, 32 and 16 positions that computes little more than the smallest. Where blocks, `causal`
    and `window` hide exactly what the bias hides, which adds nothing to the other scores, the bias is dropped; else it stays. Attention
    with blocks already (`sparsify-attention`) stays as it is, and so does all attention in packed rows. Where `ranks` share a sequence in a
    ring (context parallelism), blocks divide the positions of each; blocks of 8 too, where no larger ones do.

    ```mlir
    %o, %l = tx.attention %x, %x, %x bias %two_documents scale 0.5
    // becomes, if each has half of 64 positions
    %o, %l = tx.attention %x, %x, %x scale 5.000000e-01 blocks <32, [band 0 to 0]>
    ```
  }];
}

#endif // PARTITA_RAISE_PASSES
