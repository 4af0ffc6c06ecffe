//===- RtKernelsAttention.td - attention, and what is around it -------------------------------===//
//
// Included by RtKernels.td.
//
// `strides`: batch, row and head stride of every tensor, in the order of the operands, then
// the four strides of the bias; `shape`: batch, heads, sequence, keySequence, headDim, valueDim, groups. With `key`, `fullShape` is that of
// the probabilities of a micro-batch. `blocks` names an rt.block_layouts.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_RT_KERNELS_ATTENTION
#define PARTITA_RT_KERNELS_ATTENTION

def Rt_BlockLayoutsOp : Rt_Op<"block_layouts", [Symbol]> {
  let summary = "the layouts of block-sparse attention: a function that returns constant tables (partita_rt/block_layout.h)";
  let arguments = (ins SymbolNameAttr:$sym_name, Tx_BlocksAttr:$blocks, I64Attr:$sequence);
  let assemblyFormat = "$sym_name $blocks `of` $sequence attr-dict";
}

defvar Rt_AttentionShape = "attention(getShape(), getCausal(), getScale(), getWindow(), getZeroHidden(), getFirstKeys(), attentionDropout("
    "getRatio(), numbered(getOperation(), \"id\"), getKey(), getMicro(), getFirst(), getFullShape().value_or(::llvm::ArrayRef<int64_t>())), "
    "getBlocks().value_or(\"\"), getFirstHead())";

def Rt_AttentionForwardOp : Rt_Call<"attention_forward", "attentionForward",
    ["heads(getOut(), getStrides(), 0)", "orNull(getLse())", "heads(getQ(), getStrides(), 1)", "heads(getK(), getStrides(), 2)",
     "heads(getV(), getStrides(), 3)", Rt_AttentionShape, "scores(getBias(), getStrides().drop_front(12))"], [AttrSizedOperandSegments], "0", ["id"]> {
  let summary = "softmax(scale q k^T + bias) v without storing the scores";
  let arguments = (ins B:$out, Optional<B>:$lse, B:$q, B:$k, B:$v, Optional<B>:$bias, Optional<B>:$firstKeys,
                       Optional<B>:$firstHead, Optional<B>:$key, Optional<B>:$micro, Optional<B>:$first, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$shape,
                       BoolAttr:$causal, F64Attr:$scale, I64Attr:$window, BoolAttr:$zeroHidden, OptionalAttr<F64Attr>:$ratio,
                       OptionalAttr<I64Attr>:$id, OptionalAttr<DenseI64ArrayAttr>:$fullShape,
                       OptionalAttr<FlatSymbolRefAttr>:$blocks);
}
defvar Rt_AttentionHasSums = "(getDqSums() || getDkSums() || getDvSums())";

def Rt_AttentionBackwardOp : Rt_Call<"attention_backward", "attentionBackward",
    ["heads(getDq(), getStrides(), 0)", "heads(getDk(), getStrides(), 1)", "heads(getDv(), getStrides(), 2)", "getDelta()",
     "heads(getDout(), getStrides(), 3)", "heads(getOut(), getStrides(), 4)", "getLse()", "heads(getQ(), getStrides(), 5)",
     "heads(getK(), getStrides(), 6)", "heads(getV(), getStrides(), 7)", Rt_AttentionShape,
     !strconcat("scores(getBias(), getStrides().drop_front(24), ", Rt_AttentionHasSums, ")"),
     !strconcat("scores(getDbias(), getStrides().drop_front(24), ", Rt_AttentionHasSums, ")"),
     "listingOrNull({getDqSums(), getDkSums(), getDvSums()})"], [AttrSizedOperandSegments],
    !strconcat(Rt_AttentionHasSums, " ? AttentionSums{getShape()[0], getShape()[1], getShape()[2], getShape()[3], getShape()[4], getShape()[5], "
                                    "getShape()[6]}.scratch() : 0"), ["id"]> {
  let summary = "attention's gradients; optionally the bias's, and the sums of the rows of dq, dk and dv";
  let arguments = (ins B:$dq, B:$dk, B:$dv, Optional<B>:$dbias, Optional<B>:$dqSums, Optional<B>:$dkSums, Optional<B>:$dvSums, B:$delta, B:$dout, B:$out, B:$lse, B:$q, B:$k, B:$v,
                       Optional<B>:$bias, Optional<B>:$firstKeys, Optional<B>:$firstHead, Optional<B>:$key, Optional<B>:$micro, Optional<B>:$first,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$shape, BoolAttr:$causal, F64Attr:$scale, I64Attr:$window,
                       BoolAttr:$zeroHidden, OptionalAttr<F64Attr>:$ratio, OptionalAttr<I64Attr>:$id, OptionalAttr<DenseI64ArrayAttr>:$fullShape,
                       OptionalAttr<FlatSymbolRefAttr>:$blocks);
}
// A step's shape also says where its queries and keys lie in the full sequences.
defvar Rt_AttentionStepShape = "attentionStep(getShape(), getCausal(), getScale(), getWindow(), getZeroHidden(), getFirstKeys(), attentionDropout("
    "getRatio(), numbered(getOperation(), \"id\"), getKey(), getMicro(), getFirst(), getFullShape().value_or(::llvm::ArrayRef<int64_t>())), "
    "getFull(), getRuns(), getFirstQuery(), getFirstKey(), getBlocks().value_or(\"\"), getFirstHead())";

def Rt_AttentionStepOp : Rt_Call<"attention_step", "attentionStep",
    ["heads(getOut(), getStrides(), 0)", "getLse()", "heads(getQ(), getStrides(), 1)", "heads(getK(), getStrides(), 2)",
     "heads(getV(), getStrides(), 3)", Rt_AttentionStepShape, "scores(getBias(), getStrides().drop_front(12), true)", "yesOrNo(getContinues())"],
    [AttrSizedOperandSegments], "0", ["id"]> {
  let summary = "adds the keys of one more rank to softmax(scale q k^T + bias) v and its denominators; without `continues`, begins with them";
  let description = "`full`: the lengths of the full sequences, of queries and of keys; `runs`: in how many runs this rank has a part of each.";
  let arguments = (ins B:$out, B:$lse, B:$q, B:$k, B:$v, Optional<B>:$bias, Optional<B>:$firstKeys, Optional<B>:$firstHead, Optional<B>:$key,
                       Optional<B>:$micro, Optional<B>:$first, B:$firstQuery, B:$firstKey, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$shape, BoolAttr:$causal,
                       F64Attr:$scale, I64Attr:$window, BoolAttr:$zeroHidden, OptionalAttr<F64Attr>:$ratio, OptionalAttr<I64Attr>:$id,
                       OptionalAttr<DenseI64ArrayAttr>:$fullShape, DenseI64ArrayAttr:$full, DenseI64ArrayAttr:$runs, BoolAttr:$continues,
                       OptionalAttr<FlatSymbolRefAttr>:$blocks);
}
def Rt_AttentionStepBackwardOp : Rt_Call<"attention_step_backward", "attentionStepBackward",
    ["heads(getDq(), getStrides(), 0)", "heads(getDk(), getStrides(), 1)", "heads(getDv(), getStrides(), 2)", "getDelta()",
     "heads(getDout(), getStrides(), 3)", "heads(getOut(), getStrides(), 4)", "getLse()", "heads(getQ(), getStrides(), 5)",
     "heads(getK(), getStrides(), 6)", "heads(getV(), getStrides(), 7)", Rt_AttentionStepShape,
     "scores(getBias(), getStrides().drop_front(24), true)", "scores(getDbias(), getStrides().drop_front(24), true)", "yesOrNo(getContinues())"], [AttrSizedOperandSegments], "0", ["id"]> {
  let summary = "the gradients of one step of attention; with `continues`, dq is added to; the bias's are always added to `dbias`";
  let arguments = (ins B:$dq, B:$dk, B:$dv, Optional<B>:$dbias, B:$delta, B:$dout, B:$out, B:$lse, B:$q, B:$k, B:$v, Optional<B>:$bias,
                       Optional<B>:$firstKeys, Optional<B>:$firstHead, Optional<B>:$key, Optional<B>:$micro, Optional<B>:$first,
                       B:$firstQuery, B:$firstKey, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$shape, BoolAttr:$causal, F64Attr:$scale, I64Attr:$window,
                       BoolAttr:$zeroHidden, OptionalAttr<F64Attr>:$ratio, OptionalAttr<I64Attr>:$id, OptionalAttr<DenseI64ArrayAttr>:$fullShape,
                       DenseI64ArrayAttr:$full, DenseI64ArrayAttr:$runs, BoolAttr:$continues,
                       OptionalAttr<FlatSymbolRefAttr>:$blocks);
}
def Rt_DocumentStartsOp : Rt_Call<"document_starts", "documentStarts", ["getStarts()", "getIds()", "getRows()", "getWidth()"]> {
  let summary = "the first position of every position's document";
  let arguments = (ins B:$starts, B:$ids, I64Attr:$rows, I64Attr:$width);
}
def Rt_DocumentStartsAfterOp : Rt_Call<"document_starts_after", "documentStartsAfter",
    ["getToken()", "getStarts()", "getIds()", "getRows()", "getWidth()"]> {
  let summary = "the first position of every position's document, which begins behind a token";
  let arguments = (ins I64Attr:$token, B:$starts, B:$ids, I64Attr:$rows, I64Attr:$width);
}
def Rt_RotateHalfOp : Rt_Call<"rotate_half", "rotateHalf",
    ["getY()", "getX()", "getRows()", "getWidth()", "\"Pairs::\" + std::string(getInterleaved() ? \"Interleaved\" : \"Halves\")"]> {
  let summary = "a quarter turn of every pair of a row";
  let arguments = (ins B:$y, B:$x, I64Attr:$rows, I64Attr:$width, BoolAttr:$interleaved);
}
def Rt_RotaryOp : Rt_Call<"rotary", "rotary",
    ["getY()", "part(getStrides(), 4, 0)", "getX()", "part(getStrides(), 4, 1)", "getCos()", "part(getStrides(), 4, 2)", "getSin()",
     "part(getStrides(), 4, 3)", "shape(getShape())", "\"Pairs::\" + std::string(getInterleaved() ? \"Interleaved\" : \"Halves\")",
     "\"Turn::\" + std::string(getBack() ? \"Back\" : \"Forth\")"]> {
  let summary = "x cos + turned(x) sin, or its transpose; `strides` has those of y, x, cos and sin";
  let arguments = (ins B:$y, B:$x, B:$cos, B:$sin, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$shape, BoolAttr:$interleaved,
                       BoolAttr:$back);
}
def Rt_RepeatOp : Rt_Call<"repeat", "repeat",
    ["getY()", "getX()", "getOuter()", "getIndices()", "getTimes()", "target.indices(getFirst(), getCount())", "getInner()"]> {
  let summary = "each index of a dimension several times in a row";
  let arguments = (ins B:$y, B:$x, Optional<B>:$first, I64Attr:$outer, I64Attr:$indices, I64Attr:$times, I64Attr:$count, I64Attr:$inner);
}
def Rt_RepeatSumOp : Rt_Call<"repeat_sum", "repeatSum",
    ["getDx()", "getDy()", "getOuter()", "getIndices()", "getTimes()", "target.indices(getFirst(), getCount())", "getInner()"]> {
  let summary = "repeat's transpose: sums";
  let arguments = (ins B:$dx, B:$dy, Optional<B>:$first, I64Attr:$outer, I64Attr:$indices, I64Attr:$times, I64Attr:$count, I64Attr:$inner);
}
def Rt_DropoutOp : Rt_Call<"dropout", "dropout",
    ["getY()", "getX()", "shape(getShape())", "shape(getFullShape())", "target.dropout(getRatio(), numbered(getOperation(), \"id\"), getKey())",
     "target.firstElement(getMicro(), getFullShape(), getFirst())"], [], "0", ["id"]> {
  let summary = "elements zeroed at random by their index in the full tensor, the others scaled";
  let arguments = (ins B:$y, B:$x, B:$key, B:$micro, Optional<B>:$first, DenseI64ArrayAttr:$shape, DenseI64ArrayAttr:$fullShape,
                       F64Attr:$ratio, I64Attr:$id);
}

#endif // PARTITA_RT_KERNELS_ATTENTION
