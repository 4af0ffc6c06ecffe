//===- TxTransformer.td - op table: the ops of a Transformer ----------------------------------------===//

#ifndef PARTITA_TX_TRANSFORMER
#define PARTITA_TX_TRANSFORMER

include "dialects/Tx/TxBase.td"
include "dialects/Tx/TxBlocks.td"

//===------------------------------------------------------------------------------------------------===//
// Matmuls. The first three are closed under differentiation; batch_matmul is too, with transposes.
//===------------------------------------------------------------------------------------------------===//

class Tx_Matmul<string mnemonic> : Tx_InferredOp<mnemonic> {
  let precision = "Low";
  let arguments = (ins Tx_Float:$a, Tx_Float:$b);
  let results = (outs Tx_Float:$result);
  let assemblyFormat = "$a `,` $b attr-dict `:` functional-type(operands, results)";
}

def Tx_MatMulOp : Tx_Matmul<"matmul"> {
  let summary = "a @ b: a [..., k], b [k, n]";
  let shardRule = "~* k+, ~k+ n -> * n";
  let gradient = [{ return {g.op<MatMulNTOp>(g.dy(), getB()), g.op<MatMulTNOp>(getA(), g.dy())}; }];
  let hasCanonicalizeMethod = 1;
}
def Tx_MatMulNTOp : Tx_Matmul<"matmul_nt"> {
  let summary = "a @ b^T: a [..., k], b [n, k]";
  let shardRule = "~* k+, ~n k+ -> * n";
  let gradient = [{ return {g.op<MatMulOp>(g.dy(), getB()), g.op<MatMulTNOp>(g.dy(), getA())}; }];
  let hasCanonicalizeMethod = 1;
}
def Tx_MatMulTNOp : Tx_Matmul<"matmul_tn"> {
  let summary = "a^T @ b over all leading dimensions: a [..., k], b [..., n] -> [k, n]";
  let description = "The gradient of a weight.";
  let shardRule = "~*+ k, ~*+ n -> k n";
  let gradient = [{ return {g.op<MatMulNTOp>(getB(), g.dy()), g.op<MatMulOp>(getA(), g.dy())}; }];
}
def Tx_BatchMatMulOp : Tx_Matmul<"batch_matmul"> {
  let summary = "a @ b per leading index: a [..., m, k], b [..., k, n]";
  let shardRule = "~* m k+, ~* k+ n -> * m n";
  let gradient = [{
    return {g.op<BatchMatMulOp>(g.dy(), g.swapLast(getB())), g.op<BatchMatMulOp>(g.swapLast(getA()), g.dy())};
  }];
}

//===------------------------------------------------------------------------------------------------===//
// Normalization and softmax over the last dimension
//===------------------------------------------------------------------------------------------------===//

def Tx_SoftmaxOp : Tx_InferredOp<"softmax"> {
  let summary = "exp(x - max) / sum, over the last dimension";
  let shardRule = "* n^ -> * n^";
  let arguments = (ins Tx_Float:$x);
  let results = (outs Tx_Float:$result);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
  let gradient = [{ return {g.op<SoftmaxGradOp>(getResult(), g.dy())}; }];
}
def Tx_SoftmaxGradOp : Tx_InferredOp<"softmax_grad"> {
  let summary = "y (dy - sum(dy y)), over the last dimension";
  let shardRule = "* n^, ~* n^ -> * n^";
  let arguments = (ins Tx_Float:$y, Tx_Float:$dy);
  let results = (outs Tx_Float:$dx);
  let assemblyFormat = "$y `,` $dy attr-dict `:` functional-type(operands, results)";
}

def Tx_LayerNormOp : Tx_InferredOp<"layer_norm", [],
    "::mlir::getElementTypeOrSelf(operands[0]), ::partita::tx::statisticElement(operands[0]), ::partita::tx::statisticElement(operands[0])"> {
  let summary = "(x - mean) rstd w + b over the last dimension";
  let description = [{
    Ba, Kiros and Hinton, arXiv 1607.06450; rstd = 1 / sqrt(variance + epsilon), the variance biased.
    The mean and rstd of every row are results so that the backward pass can use them.

    Over a split dimension it is written out (splitForm): each rank sums its shard of a row, and of the squares;
    two numbers per row are reduced in the forward pass and two in the backward pass.
  }];
  let shardRule = "* n^!, n^!, n^! -> * n^!, *, *";
  let arguments = (ins Tx_Float:$x, Tx_Float:$w, Tx_Float:$b, F64Attr:$epsilon);
  let results = (outs Tx_Float:$y, Tx_Float:$mean, Tx_Float:$rstd);
  let assemblyFormat = "$x `,` $w `,` $b `eps` $epsilon attr-dict `:` functional-type(operands, results)";
  let moreDeclarations = "::llvm::SmallVector<::mlir::Value> splitForm(::mlir::OpBuilder &builder, int64_t parts);";
  let gradient = [{
    auto grad = LayerNormGradOp::create(g.builder, getLoc(), ValueRange{getX(), getW(), getMean(), getRstd(), g.dy()});
    return {grad.getDx(), grad.getDw(), grad.getDb()};
  }];
}
def Tx_LayerNormGradOp : Tx_InferredOp<"layer_norm_grad", [],
    "::mlir::getElementTypeOrSelf(operands[0]), ::mlir::getElementTypeOrSelf(operands[1]), ::mlir::getElementTypeOrSelf(operands[1]), ::mlir::getElementTypeOrSelf(operands[0])"> {
  let summary = "cotangents of x, w and b, and the sum of dx's rows";
  let description = "`sums` is the gradient of a bias whose addition gave x; `fuse-norm-sums` replaces that gradient with it.";
  let shardRule = "*+ n^, n^, *+, *+, ~*+ n^ -> * n^, n^, n^, n^";
  let arguments = (ins Tx_Float:$x, Tx_Float:$w, Tx_Float:$mean, Tx_Float:$rstd, Tx_Float:$dy);
  let results = (outs Tx_Float:$dx, Tx_Float:$dw, Tx_Float:$db, Tx_Float:$sums);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Tx_RmsNormOp : Tx_InferredOp<"rms_norm", [],
    "::mlir::getElementTypeOrSelf(operands[0]), ::partita::tx::statisticElement(operands[0])"> {
  let summary = "x rstd w over the last dimension";
  let description = [{
    Zhang and Sennrich, arXiv 1910.07467; rstd = 1 / sqrt(mean of x^2 + epsilon). The rstd of every row is
    a result so that the backward pass can use it.

    Over a split dimension it is written out (splitForm): each rank sums the squares of its shard of a row; one
    number per row is reduced in the forward pass and one in the backward pass.
  }];
  let shardRule = "* n^!, n^! -> * n^!, *";
  let arguments = (ins Tx_Float:$x, Tx_Float:$w, F64Attr:$epsilon);
  let results = (outs Tx_Float:$y, Tx_Float:$rstd);
  let assemblyFormat = "$x `,` $w `eps` $epsilon attr-dict `:` functional-type(operands, results)";
  let moreDeclarations = "::llvm::SmallVector<::mlir::Value> splitForm(::mlir::OpBuilder &builder, int64_t parts);";
  let gradient = [{
    auto grad = RmsNormGradOp::create(g.builder, getLoc(), ValueRange{getX(), getW(), getRstd(), g.dy()});
    return {grad.getDx(), grad.getDw()};
  }];
}
def Tx_RmsNormGradOp : Tx_InferredOp<"rms_norm_grad", [],
    "::mlir::getElementTypeOrSelf(operands[0]), ::mlir::getElementTypeOrSelf(operands[1])"> {
  let summary = "cotangents of x and w";
  let shardRule = "*+ n^, n^, *+, ~*+ n^ -> * n^, n^";
  let arguments = (ins Tx_Float:$x, Tx_Float:$w, Tx_Float:$rstd, Tx_Float:$dy);
  let results = (outs Tx_Float:$dx, Tx_Float:$dw);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

//===------------------------------------------------------------------------------------------------===//
// Attention
//===------------------------------------------------------------------------------------------------===//

/// Its rule and its result types depend on which dimensions the heads of k and the bias have: TxAttentionRules.cpp.
class Tx_Attention<string mnemonic>
    : Tx_Op<mnemonic, [DeclareOpInterfaceMethods<InferTypeOpInterface>, AttrSizedOperandSegments,
                       DeclareOpInterfaceMethods<DropoutInterface>]> {
  let precision = "Low";
  let shardRule = "";
  let inferredDeclarations = [{
    static bool isCompatibleReturnTypes(::mlir::TypeRange inferred, ::mlir::TypeRange actual);
    double getComputedShare();
  }];
}

// Its bias, first keys and mask, and the dropout of its probabilities.
defvar Tx_AttentionExtras = (ins Optional<Tx_Float>:$bias, Optional<Tx_Int>:$first_keys, Optional<1DTensorOf<[I64]>>:$first_head,
                                 Optional<0DTensorOf<[I64]>>:$key, Optional<0DTensorOf<[I64]>>:$micro, Optional<Tx_Int>:$first,
                                 F64Attr:$scale, UnitAttr:$causal, OptionalAttr<I64Attr>:$window, UnitAttr:$zero_hidden,
                                 OptionalAttr<F64Attr>:$ratio, OptionalAttr<I64Attr>:$id,
                                 OptionalAttr<DenseI64ArrayAttr>:$fullShape, OptionalAttr<Tx_BlocksAttr>:$blocks,
                                 OptionalAttr<StrAttr>:$ring);

def Tx_AttentionOp : Tx_Attention<"attention"> {
  let matmuls = ["e", "d"]; // scores; scores times v
  let summary = "softmax(scale q k^T [+ bias] [+ causal mask]) v, per batch element and head";
  let description = [{
    q [b, s, h, d], k [b, t, g, d], v [b, t, g, e] -> out [b, s, h, e] and, for the backward pass, the
    logarithm of the softmax's denominator lse [b, h, s], relative to each query's base (partita_rt/attention_base.h): zero
    unless the biases of all keys that the query sees are so low that they would absorb the logarithm.

    - g divides h: query head i reads key head i / (h / g) (Ainslie et al., arXiv 2305.13245).
    - `bias` [b or 1, h or 1, s or 1, t or 1] is added to the scores: padding masks, relative positions.
    - `causal`: query i sees keys up to i + t - s; `window`: only the last `window` of these.
    - `from` [b, s] (32-bit integers): query i sees no key before from[i], the first of its document where a sequence packs
      several (tx.document_starts). Nondecreasing along s; kernels skip the tiles before it.
    - `blocks`: only these blocks of scores are computed, the others are as hidden as by a mask (Child et al., arXiv 1904.10509). The other
      masks go on hiding what they hide. `first_head` is the number of a shard's first head where heads have different patterns.
    - A query all of whose scores are -inf has no softmax: it gets NaN, or zeros with `zero_hidden`.
    - `ring`: the mesh axis that may split both sequences, of queries and of keys, so that each rank has some of either. The op then exchanges
      keys and values among the ranks, and its rule has one letter for the shards of both. `expand-ring` writes it out as steps
      (tx.attention_step) with a par.shift between them. Set by `partition-seed-context`.
    - `dropout` drops probabilities as tx.dropout of the same `id`, `key` and `micro` drops those of a tensor [b, h, s, t] between softmax
      and v, element for element: with M = 0 or 1 / (1 - ratio), out = (P M) v and, for the backward pass, dP = M (dout v^T),
      dv = (P M)^T dout. sum_j P_ij dP_ij stays the sum of dout out, so that M is not stored either but drawn again (Dao et al.,
      algorithm 4). `first` and `of` are those of tx.dropout for a shard of that tensor.

    Rule: `b s^ (h g^) d^, b t^ h d^, b t^ h e^, ... -> b s^ (h g^) e^, b (h g^) s^`, so heads are split along
    with their keys; with one key head, only the query heads are split. `from` is `b s^`. With `ring`, s^ is `(r s^)` and t^ is `(r t^)`, or r alone.
    Key heads that do not divide over as many ranks as query heads do are repeated (splitForm).
    Kernels never store the s x t matrix (Dao et al., arXiv 2205.14135).
  }];
  let arguments = !con((ins Tx_Float:$q, Tx_Float:$k, Tx_Float:$v), Tx_AttentionExtras);
  let results = (outs Tx_Float:$out, Tx_Float:$lse);
  let assemblyFormat = [{
    $q `,` $k `,` $v (`bias` $bias^)? (`from` $first_keys^)? `scale` $scale (`causal` $causal^)? (`window` $window^)?
    (`blocks` $blocks^)? (`head` $first_head^)? (`zero_hidden` $zero_hidden^)? (`dropout` $ratio^ `id` $id)? (`key` $key^ `micro` $micro)?
    (`first` $first^ `of` $fullShape)? (`ring` $ring^)? attr-dict `:` functional-type(operands, results)
  }];
  let moreDeclarations = [{
    void localize();
    /// Builds the same attention of other keys and values.
    ::partita::tx::AttentionOp rebuild(::mlir::OpBuilder &builder, ::mlir::Value k, ::mlir::Value v);
    ::llvm::SmallVector<::mlir::Value> splitForm(::mlir::OpBuilder &builder, int64_t parts);
    ::std::optional<::std::pair<::llvm::StringRef, int64_t>> dealtOut();
    bool mayStayWide(unsigned operand) { return operand > 2; }
  }];
  let gradient = [{
    auto grad = AttentionGradOp::create(g.builder, getLoc(), getQ(), getK(), getV(), getOut(), getLse(), g.dy(), getBias(),
                                        getFirstKeys(), getFirstHead(), getKey(), getMicro(), getFirst(), getScaleAttr(), getCausalAttr(),
                                        getWindowAttr(), getZeroHiddenAttr(), getRatioAttr(), getIdAttr(), getFullShapeAttr(), getBlocksAttr(),
                                        getRingAttr(), UnitAttr());
    SmallVector<Value> flowing{grad.getDq(), grad.getDk(), grad.getDv()};
    if (getBias())
      flowing.push_back(grad.getDbias());
    flowing.resize(getNumOperands()); // first keys, and the numbers of dropout
    return flowing;
  }];
  let hasVerifier = 1;
}
def Tx_AttentionGradOp : Tx_Attention<"attention_grad"> {
  let matmuls = ["e", "d", "d", "e", "e"]; // scores; cotangents of scores, v, q, k
  let summary = "cotangents of q, k, v and the bias, and sums of their rows";
  let description = [{
    After dq, dk and dv comes the cotangent of the bias, if there is one. With `sums`, the sums of dq [h, d], dk [g, d] and dv [g, e] over the
    batch and the sequence follow: the gradients of biases whose additions gave q, k and v. `fuse-attention-sums` sets it. Not in a ring.
  }];
  let arguments = !con((ins Tx_Float:$q, Tx_Float:$k, Tx_Float:$v, Tx_Float:$out, Tx_Float:$lse, Tx_Float:$dout), Tx_AttentionExtras,
                       (ins UnitAttr:$sums));
  let results = (outs Tx_Float:$dq, Tx_Float:$dk, Tx_Float:$dv, Variadic<Tx_Float>:$others);
  let assemblyFormat = [{
    $q `,` $k `,` $v `,` $out `,` $lse `,` $dout (`bias` $bias^)? (`from` $first_keys^)? `scale` $scale (`causal` $causal^)?
    (`window` $window^)? (`blocks` $blocks^)? (`head` $first_head^)? (`zero_hidden` $zero_hidden^)? (`dropout` $ratio^ `id` $id)?
    (`key` $key^ `micro` $micro)?     (`first` $first^ `of` $fullShape)? (`ring` $ring^)? (`sums` $sums^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let moreDeclarations = [{
    void localize();
    /// The bias's cotangent, or null.
    ::mlir::TypedValue<::mlir::RankedTensorType> getDbias();
    /// The sums of dq, dk and dv, or nothing.
    ::mlir::ResultRange getRowSums() { return getOthers().take_back(getSums() ? 3 : 0); }
    /// Creates the same op with `sums` before this one.
    ::partita::tx::AttentionGradOp withSums();
  }];
  let hasVerifier = 1;
}

//===------------------------------------------------------------------------------------------------===//
// Steps of attention in a ring
//===------------------------------------------------------------------------------------------------===//

/// The share of attention that a rank computes with the keys of one rank: queries and keys lie in the full sequences from the
/// positions on that `first_query` and `first_key` say.
class Tx_AttentionStep<string mnemonic> : Tx_Op<mnemonic, [AttrSizedOperandSegments]> {
  let precision = "Low";
  let shardRule = "";
  let inferredDeclarations = "double getComputedShare();\n";
}

// As Tx_AttentionExtras, and where the shards lie.
defvar Tx_AttentionStepExtras = (ins Optional<Tx_Float>:$bias, Optional<Tx_Int>:$first_keys, Optional<1DTensorOf<[I64]>>:$first_head,
                                     Optional<0DTensorOf<[I64]>>:$key, Optional<0DTensorOf<[I64]>>:$micro, Optional<Tx_Int>:$first,
                                     1DTensorOf<[I64]>:$first_query, 1DTensorOf<[I64]>:$first_key, F64Attr:$scale, UnitAttr:$causal,
                                     OptionalAttr<I64Attr>:$window, UnitAttr:$zero_hidden, OptionalAttr<F64Attr>:$ratio,
                                     OptionalAttr<I64Attr>:$id, OptionalAttr<DenseI64ArrayAttr>:$fullShape,
                                     OptionalAttr<Tx_BlocksAttr>:$blocks, OptionalAttr<I64Attr>:$behind, StrAttr:$ring);

def Tx_AttentionStepOp : Tx_AttentionStep<"attention_step"> {
  let matmuls = ["e", "d"]; // scores; scores times v
  let summary = "attention over the keys of one more rank, added to that over those before";
  let description = [{
    The state between the steps of ring attention (Liu et al., arXiv 2310.01889) is what attention over the keys so far yields: `out` in 32
    bits, and the logarithm of the softmax's denominator `lse`. With `onto` a step adds its keys to that state:

        lse = log(exp(lse') + sum_j exp(score_j));  out = exp(lse' - lse) out' + sum_j exp(score_j - lse) v_j

    A query that has seen no key has out = 0 and lse = -inf. Scores are relative to the base that the query has with all keys of the full
    sequence, as in tx.attention. Masks, blocks, dropout and the columns of a bias go by positions in the full
    sequences: k and v are those of the positions from `first_key` on, q those from `first_query` on; one number for each run of consecutive
    positions. `blocks` are those of the full sequence, each run has whole ones. `behind` says how many places before this rank the one stands
    whose keys these are: of its work with blocks, the mean over the ranks is counted.

    Created by `expand-ring`, after differentiation; becomes a kernel call. In the full program, in which a shift rotates the keys by
    shards, a shard of queries sees the shard of keys at its own place.
  }];
  let arguments = !con((ins Tx_Float:$q, Tx_Float:$k, Tx_Float:$v, Optional<Tx_Float>:$out_before, Optional<Tx_Float>:$lse_before),
                       Tx_AttentionStepExtras);
  let results = (outs Tx_Float:$out, Tx_Float:$lse);
  let assemblyFormat = [{
    $q `,` $k `,` $v (`onto` $out_before^ `,` $lse_before)? (`bias` $bias^)? (`from` $first_keys^)? `at` $first_query `,` $first_key `scale` $scale
    (`causal` $causal^)? (`window` $window^)? (`blocks` $blocks^ `behind` $behind)? (`head` $first_head^)? (`zero_hidden` $zero_hidden^)?
    (`dropout` $ratio^ `id` $id)? (`key` $key^ `micro` $micro)? (`first` $first^ `of` $fullShape)? `ring` $ring attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Tx_AttentionStepGradOp : Tx_AttentionStep<"attention_step_grad"> {
  let matmuls = ["e", "d", "d", "e", "e"]; // scores; cotangents of scores, v, q, k
  let summary = "the share of one rank's keys in the cotangents of q, k, v and the bias";
  let description = [{
    `out` and `lse` are those after all steps. The results are sums in 32 bits; `onto` is a sum that q's cotangent is
    added to; those of the keys and values travel, and are added where they arrive. `dbias` is that of this step alone.
    Created by `expand-ring`; becomes a kernel call.
  }];
  let arguments = !con((ins Tx_Float:$q, Tx_Float:$k, Tx_Float:$v, Tx_Float:$out, Tx_Float:$lse, Tx_Float:$dout,
                        Optional<Tx_Float>:$dq_before), Tx_AttentionStepExtras);
  let results = (outs Tx_Float:$dq, Tx_Float:$dk, Tx_Float:$dv, Optional<Tx_Float>:$dbias);
  let assemblyFormat = [{
    $q `,` $k `,` $v `,` $out `,` $lse `,` $dout (`onto` $dq_before^)? (`bias` $bias^)? (`from` $first_keys^)?
    `at` $first_query `,` $first_key `scale` $scale (`causal` $causal^)? (`window` $window^)? (`blocks` $blocks^ `behind` $behind)?
    (`head` $first_head^)? (`zero_hidden` $zero_hidden^)? (`dropout` $ratio^ `id` $id)? (`key` $key^ `micro` $micro)?
    (`first` $first^ `of` $fullShape)? `ring` $ring attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Tx_DocumentStartsOp : Tx_InferredOp<"document_starts", [], "::mlir::IntegerType::get(context, 32)"> {
  let summary = "per position, the first one of its document: `from` of tx.attention";
  let description = [{
    A document is a run of equal ids of a sequence. An id that comes back after another document is an error of the run, because
    the model's mask, which compares ids, would show these positions to each other. With `after`, ids are tokens, and a document
    begins behind each token of this number.

    Created by `raise-documents` and, with `after`, by `pack-documents`.
  }];
  let shardRule = "* s^ -> * s^";
  let arguments = (ins Tx_Int:$ids, OptionalAttr<I64Attr>:$after);
  let results = (outs Tx_Int:$result);
  let assemblyFormat = "$ids (`after` $after^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Tx_RotateHalfOp : Tx_InferredOp<"rotate_half"> {
  let summary = "a quarter turn of every pair (a, b) of the last dimension: (-b, a)";
  let description = [{
    Rotary position embedding is x cos + rotate_half(x) sin (Su et al., arXiv 2104.09864). A pair is
    elements i and i + n/2 of a row of n or, with `interleaved`, 2i and 2i + 1.
  }];
  let shardRule = "~* n^ -> * n^";
  let arguments = (ins Tx_Float:$x, UnitAttr:$interleaved);
  let results = (outs Tx_Float:$result);
  let assemblyFormat = "$x (`interleaved` $interleaved^)? attr-dict `:` functional-type(operands, results)";
  let gradient = [{
    Value turned = RotateHalfOp::create(g.builder, getLoc(), ValueRange{g.dy()}, (*this)->getAttrs());
    return {g.op<NegOp>(turned)};
  }];
  let hasVerifier = 1;
}

//===------------------------------------------------------------------------------------------------===//
// Dropout
//===------------------------------------------------------------------------------------------------===//

def Tx_DropoutOp : Tx_Op<"dropout", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<DropoutInterface>]> {
  let summary = "each element zero with probability `ratio`, else divided by 1 - ratio; x without a key";
  let description = [{
    The mask depends on `key` (of the run and the step), `id` (the op as imported) and each element's number:
    its row-major index in the full tensor, counted on from the `micro` micro-batches before. So no layout,
    accumulation or recomputation changes a mask, as long as the batch is the first dimension; the gradient is
    the same op on dy.

    Created by import without a key: the identity. `key-dropout` gives those of a training step their key and
    removes the others. Once it is localized (its shape is one rank's shard), `first` is the number of the
    shard's first element and `fullShape` the full shape; `first` has one dimension per split dimension.
  }];
  let shardRule = "";
  let arguments = (ins Tx_Float:$x, Optional<0DTensorOf<[I64]>>:$key, Optional<0DTensorOf<[I64]>>:$micro,
                       Optional<Tx_Int>:$first, F64Attr:$ratio, I64Attr:$id,
                       OptionalAttr<DenseI64ArrayAttr>:$fullShape);
  let results = (outs Tx_Float:$result);
  let assemblyFormat = [{
    $x `ratio` $ratio `id` $id (`key` $key^ `micro` $micro)? (`first` $first^ `of` $fullShape)? attr-dict `:`
    functional-type(operands, results)
  }];
  let gradient = [{
    SmallVector<Value> flowing(getNumOperands());
    flowing[0] = DropoutOp::create(g.builder, getLoc(), par::cotangentType(getX().getType()), g.dy(), getKey(),
                                      getMicro(), getFirst(), getRatioAttr(), getIdAttr(), getFullShapeAttr());
    return flowing;
  }];
  let hasVerifier = 1;
  let moreDeclarations = [{ void localize(); }];
}

//===------------------------------------------------------------------------------------------------===//
// Embedding and loss
//===------------------------------------------------------------------------------------------------===//

def Tx_EmbeddingOp : Tx_InferredOp<"embedding", [LookupInterface]> {
  let summary = "the rows of the table that ids name";
  let precision = "Low";
  let description = [{
    A rank that has only the rows from `first` on (`localize` adds the operand) yields zeros where the id
    names another rank's row: the sum over ranks is the row (Shoeybi et al., arXiv 1909.08053). The row `padding`
    of the full table gets no gradient from here.
  }];
  let shardRule = "~v+ h, *, @v -> * h";
  let arguments = (ins Tx_Tensor:$table, Tx_Int:$ids, Optional<Tx_Int>:$first, OptionalAttr<I64Attr>:$padding);
  let results = (outs Tx_Tensor:$result);
  let assemblyFormat = "$table `,` $ids (`from` $first^)? (`padding` $padding^)? attr-dict `:` functional-type(operands, results)";
  let moreDeclarations = Tx_Lookup<"getIds", "getTable", "0">.declarations # "void localize();";
  let gradient = [{
    Value dtable = EmbeddingGradOp::create(g.builder, getLoc(), par::cotangentType(getTable().getType()), getIds(), g.dy(), getFirst(), getPaddingAttr());
    SmallVector<Value> result(getOperation()->getNumOperands());
    result[0] = dtable;
    return result;
  }];
}
def Tx_EmbeddingGradOp : Tx_Op<"embedding_grad"> {
  let summary = "adds every row of dy to the row of a zero table that its id names";
  let description = "Ids outside the rows from `first` on belong to other ranks; the id `padding` adds nothing.";
  let shardRule = "*+, ~*+ h, @v -> v h";
  let arguments = (ins Tx_Int:$ids, Tx_Float:$dy, Optional<Tx_Int>:$first, OptionalAttr<I64Attr>:$padding);
  let results = (outs Tx_Float:$dtable);
  let assemblyFormat = "$ids `,` $dy (`from` $first^)? (`padding` $padding^)? attr-dict `:` functional-type(operands, results)";
  let moreDeclarations = "void localize();";
  let gradient = [{
    SmallVector<Value> result(getOperation()->getNumOperands());
    result[1] = EmbeddingOp::create(g.builder, getLoc(), par::cotangentType(getDy().getType()), g.dy(), getIds(), getFirst(), IntegerAttr());
    if (std::optional<int64_t> padding = getPadding()) {
      Value isPadding = g.op<EqualOp>(getIds(), g.splat(getIds().getType(), *padding));
      auto type = cast<RankedTensorType>(result[1].getType());
      result[1] = g.op<SelectOp>(g.spread(isPadding, type.clone(g.builder.getI1Type()), {type.getRank() - 1}), g.splat(type, 0.0), result[1]);
    }
    return result;
  }];
}

def Tx_TakeOp : Tx_InferredOp<"take", [LookupInterface]> {
  let summary = "the rows of each table of x that ids name: x [..., n, h], ids [..., m]";
  let description = [{
    Every index of the leading dimensions has a table of its own. So the op can be split along these (the batch); it could not
    if all ids named rows of one table. ONNX's GatherElements (rows of one element) and GatherND with batch dimensions. Created
    by import.
  }];
  let shardRule = "~* n^ h, * m -> * m h";
  let arguments = (ins Tx_Tensor:$x, Tx_Int:$ids);
  let results = (outs Tx_Tensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let moreDeclarations = Tx_Lookup<"getIds", "getX", "getX().getType().getRank() - 2">.declarations;
  let gradient = [{
    return {TakeGradOp::create(g.builder, getLoc(), par::cotangentType(getX().getType()), getIds(), g.dy()), Value()};
  }];
}
def Tx_TakeGradOp : Tx_Op<"take_grad"> {
  let summary = "adds every row of dy to the row of its zero table that its id names";
  let shardRule = "* m+, ~* m+ h -> * n^ h";
  let arguments = (ins Tx_Int:$ids, Tx_Float:$dy);
  let results = (outs Tx_Float:$dx);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let gradient = [{
    return {Value(), TakeOp::create(g.builder, getLoc(), par::cotangentType(getDy().getType()), g.dy(), getIds())};
  }];
}

def Tx_CrossEntropyOp : Tx_InferredOp<"cross_entropy", [LookupInterface],
    "::partita::tx::statisticElement(operands[0]), ::partita::tx::statisticElement(operands[0])"> {
  let summary = "per token: log(sum(exp(logits))) - logits[label]; 0 where the label is ignore_index";
  let precision = "Exact";
  let description = [{
    logits [..., n], labels [...] -> loss [...] and, for the backward pass, the logarithm of the
    softmax's denominator. Not a mean: the objective divides by the global count of tokens.

    Over a split vocabulary it becomes, per rank, tx.log_sum_exp of its shard, the logarithm of their sum, and
    tx.token_loss: no logits are gathered, two numbers per token and the loss are reduced.
  }];
  let shardRule = "* n!, * -> *, *";
  let arguments = (ins Tx_Float:$logits, Tx_Int:$labels, I64Attr:$ignore_index);
  let results = (outs Tx_Float:$loss, Tx_Float:$lse);
  let assemblyFormat = "$logits `,` $labels `ignore` $ignore_index attr-dict `:` functional-type(operands, results)";
  let moreDeclarations = Tx_Lookup<"getLabels", "getLogits", "getLogits().getType().getRank() - 1", "getIgnoreIndex()">.declarations # "::llvm::SmallVector<::mlir::Value> splitForm(::mlir::OpBuilder &builder, int64_t parts);";
  let gradient = [{
    return {CrossEntropyGradOp::create(g.builder, getLoc(), ValueRange{getLogits(), getLabels(), getLse(), g.dy()},
                                       (*this)->getAttrs()), Value()};
  }];
}
def Tx_CrossEntropyGradOp : Tx_InferredOp<"cross_entropy_grad", [LookupInterface]> {
  let summary = "dloss (softmax(logits) - onehot(label)); 0 where the label is ignore_index";
  let description = "`lse` is that of the full row, `first` the index at which the logits of this rank begin.";
  let shardRule = "* n, *, *, ~*, @n -> * n";
  let arguments = (ins Tx_Float:$logits, Tx_Int:$labels, Tx_Float:$lse, Tx_Float:$dloss, Optional<Tx_Int>:$first, I64Attr:$ignore_index);
  let results = (outs Tx_Float:$dlogits);
  let assemblyFormat = "$logits `,` $labels `,` $lse `,` $dloss (`from` $first^)? `ignore` $ignore_index attr-dict `:` functional-type(operands, results)";
  let moreDeclarations = Tx_Lookup<"getLabels", "getLogits", "getLogits().getType().getRank() - 1", "getIgnoreIndex()">.declarations # "void localize();";
}

def Tx_LogSumExpOp : Tx_Op<"log_sum_exp"> {
  let summary = "log(sum(exp(x))) of each of several parts of the last dimension, without overflow";
  let precision = "Exact";
  let description = [{
    x [..., n] -> [..., p]: the parts have n / p elements, rounded up, and the last one has the rest. A rank that has some of
    the parts gets the index at which they begin (`localize` adds the operand `first`). So it knows where x ends, and leaves
    out the padding of its shard. No gradient flows: that of tx.token_loss contains it. Created by tx.cross_entropy's split
    form.
  }];
  let shardRule = "* n, @n -> * #n";
  let arguments = (ins Tx_Float:$x, Optional<Tx_Int>:$first);
  let results = (outs Tx_Float:$result);
  let assemblyFormat = "$x (`from` $first^)? attr-dict `:` functional-type(operands, results)";
  let moreDeclarations = "void localize();";
  let hasVerifier = 1;
}

def Tx_TokenLossOp : Tx_InferredOp<"token_loss", [LookupInterface], "::partita::tx::statisticElement(operands[0])"> {
  let summary = "tx.cross_entropy's loss with lse given; over a split vocabulary, the sum of the ranks' results";
  let precision = "Exact";
  let description = [{
    lse - logits[label] on the rank that has the label, else 0; 0 where the label is ignore_index. `lse` [...]
    must be the logarithm of the sum of exponentials of the full row: the gradient of the logits contains the
    part that flows through `lse`, so none flows into it. Created by tx.cross_entropy's split form.
  }];
  let shardRule = "* n+, *, *, @n -> *";
  let arguments = (ins Tx_Float:$logits, Tx_Int:$labels, Tx_Float:$lse, Optional<Tx_Int>:$first, I64Attr:$ignore_index);
  let results = (outs Tx_Float:$loss);
  let assemblyFormat = "$logits `,` $labels `,` $lse (`from` $first^)? `ignore` $ignore_index attr-dict `:` functional-type(operands, results)";
  let moreDeclarations = Tx_Lookup<"getLabels", "getLogits", "getLogits().getType().getRank() - 1", "getIgnoreIndex()">.declarations # "void localize();";
  let gradient = [{
    SmallVector<Value> operands{getLogits(), getLabels(), getLse(), g.dy()};
    if (getFirst())
      operands.push_back(getFirst());
    SmallVector<Value> result(getOperation()->getNumOperands());
    result[0] = CrossEntropyGradOp::create(g.builder, getLoc(), operands, (*this)->getAttrs());
    return result;
  }];
}

#endif // PARTITA_TX_TRANSFORMER
