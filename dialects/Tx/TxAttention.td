//===- TxAttention.td - op table: attention, its steps in a ring, documents, rotary embedding ---------===//
//
// Included by TxTransformer.td.

#ifndef PARTITA_TX_ATTENTION
#define PARTITA_TX_ATTENTION

include "dialects/Tx/TxBase.td"
include "dialects/Tx/TxBlocks.td"

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

#endif // PARTITA_TX_ATTENTION
