//===- RtKernels.td - one op per kernel of the runtime ----------------------------------------===//
//
// The functions of runtime/include/partita_rt/kernels.h, argument for argument; its comments say what they
// compute.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_RT_KERNELS
#define PARTITA_RT_KERNELS

include "dialects/Rt/RtBase.td"
include "dialects/Tx/TxBlocks.td"

defvar B = Rt_BufferType;

//===------------------------------------------------------------------------------------------===//
// Matmuls
//===------------------------------------------------------------------------------------------===//

def Rt_GemmOp : Rt_Call<"gemm", "gemm",
    ["trans(getTransA())", "trans(getTransB())", "getM()", "getN()", "getK()", "\"1.0f\"", "getA()", "getLda()",
     "getB()", "getLdb()", "real(getBeta())", "getC()", "getLdc()"], [],
    "gemmScratch(typeOf(getA()), typeOf(getB()), typeOf(getC()), getM(), getN(), getK())"> {
  let summary = "c = op(a) op(b) + beta c";
  let arguments = (ins B:$c, B:$a, B:$b, BoolAttr:$transA, BoolAttr:$transB, I64Attr:$m, I64Attr:$n, I64Attr:$k,
                       I64Attr:$lda, I64Attr:$ldb, I64Attr:$ldc, F64Attr:$beta);
}
def Rt_GemmBiasOp : Rt_Call<"gemm_bias", "gemmBias",
    ["trans(getTransA())", "trans(getTransB())", "getM()", "getN()", "getK()", "getA()", "getLda()",
     "getB()", "getLdb()", "getBias()", "getC()", "getLdc()"], [],
    "gemmBiasScratch(typeOf(getA()), typeOf(getB()), typeOf(getBias()), typeOf(getC()), getM(), getN(), getK())"> {
  let summary = "c = op(a) op(b) + bias, the bias added to every row";
  let arguments = (ins B:$c, B:$a, B:$b, B:$bias, BoolAttr:$transA, BoolAttr:$transB, I64Attr:$m, I64Attr:$n,
                       I64Attr:$k, I64Attr:$lda, I64Attr:$ldb, I64Attr:$ldc);
}
def Rt_GemmBiasGeluOp : Rt_Call<"gemm_bias_gelu", "gemmBiasGelu",
    ["trans(getTransA())", "trans(getTransB())", "getM()", "getN()", "getK()", "getA()", "getLda()",
     "getB()", "getLdb()", "getBias()", "getC()", "getLdc()", "orNull(getAux())", "getLdAux()"]> {
  let summary = "aux = op(a) op(b) + bias, c = gelu(aux); aux only if it is needed; only on CUDA";
  let arguments = (ins B:$c, Optional<B>:$aux, B:$a, B:$b, B:$bias, BoolAttr:$transA, BoolAttr:$transB, I64Attr:$m, I64Attr:$n,
                       I64Attr:$k, I64Attr:$lda, I64Attr:$ldb, I64Attr:$ldc, I64Attr:$ldAux);
}
def Rt_GemmGeluGradOp : Rt_Call<"gemm_gelu_grad", "gemmGeluGrad",
    ["trans(getTransA())", "trans(getTransB())", "getM()", "getN()", "getK()", "getA()", "getLda()",
     "getB()", "getLdb()", "getAux()", "getLdAux()", "getC()", "getLdc()", "orNull(getSums())"], [],
    "getSums() ? columnSumScratch(getM(), getN()) : 0"> {
  let summary = "c = op(a) op(b) times the GELU's slope at aux, and the sums of c's columns; only on CUDA";
  let arguments = (ins B:$c, Optional<B>:$sums, B:$a, B:$b, B:$aux, BoolAttr:$transA, BoolAttr:$transB, I64Attr:$m, I64Attr:$n,
                       I64Attr:$k, I64Attr:$lda, I64Attr:$ldb, I64Attr:$ldc, I64Attr:$ldAux);
}
def Rt_GemmAddOp : Rt_Call<"gemm_add", "gemmAdd",
    ["trans(getTransA())", "trans(getTransB())", "getM()", "getN()", "getK()", "getA()", "getLda()",
     "getB()", "getLdb()", "orNull(getBias())", "getAddend()", "getLdAddend()", "getC()", "getLdc()"]> {
  let summary = "c = op(a) op(b) + addend, and a bias added to every row; c may be the addend";
  let arguments = (ins B:$c, B:$a, B:$b, Optional<B>:$bias, B:$addend, BoolAttr:$transA, BoolAttr:$transB, I64Attr:$m,
                       I64Attr:$n, I64Attr:$k, I64Attr:$lda, I64Attr:$ldb, I64Attr:$ldAddend, I64Attr:$ldc);
}
def Rt_GemmBiasGradOp : Rt_Call<"gemm_bias_grad", "gemmBiasGrad",
    ["\"Cotangent::\" + std::string(getCotangentIsA() ? \"A\" : \"B\")", "getM()", "getN()", "getK()", "getA()",
     "getLda()", "getB()", "getLdb()", "getC()", "getLdc()", "getSums()", "write(getAdd())"], [],
    "gemmBiasGradScratch(getCotangentIsA() ? getM() : getN(), getK())"> {
  let summary = "c = a^T b, and the sum of the cotangent's rows, which replaces `sums` or is added to it";
  let arguments = (ins B:$c, B:$sums, B:$a, B:$b, BoolAttr:$cotangentIsA, I64Attr:$m, I64Attr:$n, I64Attr:$k,
                       I64Attr:$lda, I64Attr:$ldb, I64Attr:$ldc, BoolAttr:$add);
}
def Rt_GemmBatchedOp : Rt_Call<"gemm_batched", "gemmBatched",
    ["\"Trans::No\"", "\"Trans::No\"", "getBatch()", "getM()", "getN()", "getK()", "\"1.0f\"", "getA()",
     "getK()", "getM() * getK()", "getB()", "getN()", "getK() * getN()", "\"0.0f\"", "getC()",
     "getN()", "getM() * getN()"], [],
    "gemmScratch(typeOf(getA()), typeOf(getB()), typeOf(getC()), getM(), getN(), getK())"> {
  let summary = "dense c[i] = a[i] b[i]";
  let arguments = (ins B:$c, B:$a, B:$b, I64Attr:$batch, I64Attr:$m, I64Attr:$n, I64Attr:$k);
}

def Rt_QuantizeOp : Rt_Call<"quantize", "quantize", ["getY()", "getX()", "getScale()", "orNull(getMax())", "getN()"]> {
  let summary = "y = x / *scale in 8 bits, *max = max(*max, |x|)";
  let arguments = (ins B:$y, B:$x, B:$scale, Optional<B>:$max, I64Attr:$n);
}
def Rt_QuantizeTransposedOp : Rt_Call<"quantize_transposed", "quantizeTransposed",
    ["orNull(getY())", "getColumns()", "getX()", "getScale()", "orNull(getMax())", "orNull(getSums())", "getRows()", "getWidth()"],
    [AttrSizedOperandSegments], "getSums() ? quantizeSumsScratch(getRows(), getWidth()) : 0"> {
  let summary = "the same, and the transpose of x[rows, width] in 8 bits, or it alone, and the sums of x's columns; only on CUDA";
  let arguments = (ins Optional<B>:$y, B:$columns, B:$x, B:$scale, Optional<B>:$max, Optional<B>:$sums, I64Attr:$rows, I64Attr:$width);
}
def Rt_ThroughFp8Op : Rt_Call<"through_fp8", "throughFp8",
    ["\"Fp8::\" + getFormat().str()", "getY()", "getX()", "getScale()", "orNull(getMax())", "getN()"]> {
  let summary = "the same, times *scale: a number that 8 bits hold, in x's type";
  let arguments = (ins B:$y, B:$x, B:$scale, Optional<B>:$max, StrAttr:$format, I64Attr:$n);
}
def Rt_QuantizeBlocksOp : Rt_Call<"quantize_blocks", "quantizeBlocks", ["getValues()", "getScales()", "getX()", "getBlock()", "getN()"]> {
  let summary = "x in 8 bits, and a scale per block of consecutive elements";
  let arguments = (ins B:$values, B:$scales, B:$x, I64Attr:$block, I64Attr:$n);
}
def Rt_DequantizeBlocksOp : Rt_Call<"dequantize_blocks", "dequantizeBlocks", ["getX()", "getValues()", "getScales()", "getBlock()", "getN()"]> {
  let summary = "x = 8-bit values times their blocks' scales";
  let arguments = (ins B:$x, B:$values, B:$scales, I64Attr:$block, I64Attr:$n);
}
def Rt_RoundBlocksOp : Rt_Call<"round_blocks", "roundBlocks", ["getY()", "getX()", "getBlock()", "getN()"]> {
  let summary = "y = x as the two leave it";
  let arguments = (ins B:$y, B:$x, I64Attr:$block, I64Attr:$n);
}
def Rt_QuantizeChunksOp : Rt_Call<"quantize_chunks", "quantizeChunks",
    ["getChunks()", "getOffset()", "getStride()", "getX()", "getN()", "getChunk()", "getRanks()", "getBlock()"]> {
  let summary = "x in 4 bits, and a scale per block, in a chunk for each rank: `stride` bytes apart, from byte `offset` on";
  let arguments = (ins B:$chunks, B:$x, I64Attr:$offset, I64Attr:$stride, I64Attr:$n, I64Attr:$chunk, I64Attr:$ranks, I64Attr:$block);
}
def Rt_SumChunksOp : Rt_Call<"sum_chunks", "sumChunks",
    ["getSum()", "getChunks()", "getOffset()", "getStride()", "getChunk()", "getRanks()", "getBlock()"]> {
  let summary = "sum = the chunks of all ranks, which lie like that, added up in their order";
  let arguments = (ins B:$sum, B:$chunks, I64Attr:$offset, I64Attr:$stride, I64Attr:$chunk, I64Attr:$ranks, I64Attr:$block);
}
def Rt_ScaledGemmOp : Rt_Call<"scaled_gemm", "scaledGemm",
    ["trans(getTransA())", "trans(getTransB())", "getM()", "getN()", "getK()", "getA()", "getScaleA()", "getB()", "getScaleB()", "getC()",
     "orNull(getBias())", "orNull(getAddend())"], [AttrSizedOperandSegments]> {
  let summary = "c = *scale_a *scale_b op(a) op(b) of dense 8-bit operands, plus a bias in every row, plus a dense addend, which c may be";
  let leastCapability = "kScaledGemmCapability";
  let arguments = (ins B:$c, B:$a, B:$scaleA, B:$b, B:$scaleB, Optional<B>:$bias, Optional<B>:$addend, BoolAttr:$transA, BoolAttr:$transB, I64Attr:$m, I64Attr:$n, I64Attr:$k);
}

//===------------------------------------------------------------------------------------------===//
// Rows
//===------------------------------------------------------------------------------------------===//

def Rt_LayerNormForwardOp : Rt_Call<"layer_norm_forward", "layerNormForward",
    ["getY()", "orNull(getMean())", "orNull(getRstd())", "getX()", "getWeight()", "getBias()", "getRows()", "getWidth()", "real(getEpsilon())"],
    [AttrSizedOperandSegments]> {
  let summary = "layer norm of every row; mean and rstd for the backward pass";
  let arguments = (ins B:$y, Optional<B>:$mean, Optional<B>:$rstd, B:$x, B:$weight, B:$bias, I64Attr:$rows, I64Attr:$width, F64Attr:$epsilon);
}
def Rt_LayerNormBackwardOp : Rt_Call<"layer_norm_backward", "layerNormBackward",
    ["getDx()", "orNull(getDweight())", "orNull(getDbias())", "orNull(getSums())", "getDy()", "getX()", "getWeight()", "getMean()", "getRstd()",
     "getRows()", "getWidth()", "\"Write::Set\"", "write(getAdd())"], [AttrSizedOperandSegments],
    "normBackwardScratch(getRows(), getWidth(), hasMemory(getSums()) ? 3 : getDbias() ? 2 : getDweight() ? 1 : 0)"> {
  let summary = "layer norm's gradients, and the sums of dx's columns; `add` adds to dx";
  let arguments = (ins B:$dx, Optional<B>:$dweight, Optional<B>:$dbias, Optional<B>:$sums, B:$dy, B:$x, B:$weight, B:$mean, B:$rstd, I64Attr:$rows, I64Attr:$width, BoolAttr:$add);
}
def Rt_RmsNormForwardOp : Rt_Call<"rms_norm_forward", "rmsNormForward",
    ["getY()", "orNull(getRstd())", "getX()", "getWeight()", "getRows()", "getWidth()", "real(getEpsilon())"]> {
  let summary = "root-mean-square norm of every row; rstd for the backward pass";
  let arguments = (ins B:$y, Optional<B>:$rstd, B:$x, B:$weight, I64Attr:$rows, I64Attr:$width, F64Attr:$epsilon);
}
def Rt_RmsNormBackwardOp : Rt_Call<"rms_norm_backward", "rmsNormBackward",
    ["getDx()", "orNull(getDweight())", "getDy()", "getX()", "getWeight()", "getRstd()", "getRows()", "getWidth()",
     "\"Write::Set\"", "write(getAdd())"], [], "normBackwardScratch(getRows(), getWidth(), getDweight() ? 1 : 0)"> {
  let summary = "root-mean-square norm's gradients; `add` adds to dx";
  let arguments = (ins B:$dx, Optional<B>:$dweight, B:$dy, B:$x, B:$weight, B:$rstd, I64Attr:$rows, I64Attr:$width, BoolAttr:$add);
}
def Rt_SoftmaxForwardOp : Rt_Call<"softmax_forward", "softmaxForward", ["getY()", "getX()", "getRows()", "getWidth()"]> {
  let summary = "softmax of every row";
  let arguments = (ins B:$y, B:$x, I64Attr:$rows, I64Attr:$width);
}
def Rt_SoftmaxBackwardOp : Rt_Call<"softmax_backward", "softmaxBackward", ["getDx()", "getDy()", "getY()", "getRows()", "getWidth()"]> {
  let summary = "softmax's gradient";
  let arguments = (ins B:$dx, B:$dy, B:$y, I64Attr:$rows, I64Attr:$width);
}

include "dialects/Rt/RtKernelsAttention.td"

//===------------------------------------------------------------------------------------------===//
// Tokens
//===------------------------------------------------------------------------------------------===//

// `vocabulary` is the full size; a rank that has only `rows` of it knows where they begin: `first`.

def Rt_EmbeddingForwardOp : Rt_Call<"embedding_forward", "embeddingForward",
    ["getY()", "getIds()", "getTable()", "getN()", "getWidth()", "target.tokenRows(getVocabulary(), getFirst(), getRows())"]> {
  let summary = "rows of a table";
  let arguments = (ins B:$y, B:$ids, B:$table, Optional<B>:$first, I64Attr:$n, I64Attr:$width, I64Attr:$vocabulary, I64Attr:$rows);
}
def Rt_EmbeddingAddOp : Rt_Call<"embedding_add", "embeddingAdd",
    ["getY()", "getIds()", "getTable()", "getAddend()", "getPeriod()", "getN()", "getWidth()", "target.tokenRows(getVocabulary(), getFirst(), getRows())"]> {
  let summary = "rows of a table, added to those of another tensor, which repeat";
  let arguments = (ins B:$y, B:$ids, B:$table, B:$addend, Optional<B>:$first, I64Attr:$period, I64Attr:$n, I64Attr:$width,
                       I64Attr:$vocabulary, I64Attr:$rows);
}
def Rt_EmbeddingBackwardOp : Rt_Call<"embedding_backward", "embeddingBackward",
    ["getDtable()", "getDy()", "getIds()", "getN()", "getWidth()", "target.tokenRows(getVocabulary(), getFirst(), getRows())", "write(getAdd())", "number(getPadding())"],
    [], "rowSumScratch(getN(), getWidth())"> {
  let summary = "adds rows to a table";
  let arguments = (ins B:$dtable, B:$dy, B:$ids, Optional<B>:$first, I64Attr:$n, I64Attr:$width, I64Attr:$vocabulary, I64Attr:$rows, BoolAttr:$add,
                       OptionalAttr<I64Attr>:$padding);
}
def Rt_TakeForwardOp : Rt_Call<"take_forward", "takeForward",
    ["getY()", "getIds()", "getX()", "getTables()", "getN()", "getRows()", "getWidth()"]> {
  let summary = "rows of many tables";
  let arguments = (ins B:$y, B:$ids, B:$x, I64Attr:$tables, I64Attr:$n, I64Attr:$rows, I64Attr:$width);
}
def Rt_TakeBackwardOp : Rt_Call<"take_backward", "takeBackward",
    ["getDx()", "getDy()", "getIds()", "getTables()", "getN()", "getRows()", "getWidth()"], [],
    "rowSumScratch(getTables() * getN(), getWidth())"> {
  let summary = "adds rows to many tables";
  let arguments = (ins B:$dx, B:$dy, B:$ids, I64Attr:$tables, I64Attr:$n, I64Attr:$rows, I64Attr:$width);
}
def Rt_CrossEntropyForwardOp : Rt_Call<"cross_entropy_forward", "crossEntropyForward",
    ["getLoss()", "getLse()", "getLogits()", "getLabels()", "getRows()", "getVocabulary()", "getVocabulary()", "static_cast<int64_t>(getIgnore())"]> {
  let summary = "loss per token";
  let arguments = (ins B:$loss, B:$lse, B:$logits, B:$labels, I64Attr:$rows, I64Attr:$vocabulary, I64Attr:$ignore);
}
def Rt_TokenLossOp : Rt_Call<"token_loss", "tokenLoss",
    ["getLoss()", "getLogits()", "getLse()", "getLabels()", "getRows()", "target.tokenRows(getVocabulary(), getFirst(), getWidth())", "static_cast<int64_t>(getIgnore())"]> {
  let summary = "loss per token whose label is among this rank's logits";
  let arguments = (ins B:$loss, B:$logits, B:$lse, B:$labels, Optional<B>:$first, I64Attr:$rows, I64Attr:$vocabulary, I64Attr:$width, I64Attr:$ignore);
}
def Rt_CrossEntropyBackwardOp : Rt_Call<"cross_entropy_backward", "crossEntropyBackward",
    ["getDlogits()", "getDloss()", "getDlossStride()", "getLogits()", "getLse()", "getLabels()", "getRows()",
     "target.tokenRows(getVocabulary(), getFirst(), getWidth())", "getWidth()", "static_cast<int64_t>(getIgnore())"]> {
  let summary = "the logits' gradient";
  let arguments = (ins B:$dlogits, B:$dloss, B:$logits, B:$lse, B:$labels, Optional<B>:$first, I64Attr:$dlossStride, I64Attr:$rows,
                       I64Attr:$vocabulary, I64Attr:$width, I64Attr:$ignore);
}
def Rt_LogSumExpOp : Rt_Call<"log_sum_exp", "logSumExp",
    ["getY()", "getX()", "getRows()", "target.tokenRows(getVocabulary(), getFirst(), getWidth())"]> {
  let summary = "log(sum(exp(x))) of the part of every row that belongs to the vocabulary";
  let arguments = (ins B:$y, B:$x, Optional<B>:$first, I64Attr:$rows, I64Attr:$vocabulary, I64Attr:$width);
}
def Rt_ClassifierLossOp : Rt_Call<"classifier_loss", "classifierLoss",
    ["getLoss()", "getX()", "getW()", "getLabels()", "getRows()", "getWidth()", "paddedRows(getVocabulary(), getPadded())",
     "static_cast<int64_t>(getIgnore())", "getScratch()", "classifierBlock(getBlock())"]> {
  let summary = "cross-entropy of a matmul, without its logits";
  let arguments = (ins B:$loss, B:$x, B:$w, B:$labels, B:$scratch, I64Attr:$rows, I64Attr:$width, I64Attr:$vocabulary,
                       I64Attr:$ignore, DenseI64ArrayAttr:$block, DefaultValuedAttr<I64Attr, "0">:$padded);
}
def Rt_ClassifierLossGradOp : Rt_Call<"classifier_loss_grad", "classifierLossGrad",
    ["getLoss()", "getDx()", "getDw()", "getDloss()", "getDlossStride()", "getX()", "getW()", "getLabels()",
     "getRows()", "getWidth()", "paddedRows(getVocabulary(), getPadded())", "static_cast<int64_t>(getIgnore())", "getScratch()", "classifierBlock(getBlock())"]> {
  let summary = "cross-entropy of a matmul with its gradients, without the logits of all tokens";
  let arguments = (ins B:$loss, B:$dx, B:$dw, B:$dloss, B:$x, B:$w, B:$labels, B:$scratch, I64Attr:$dlossStride,
                       I64Attr:$rows, I64Attr:$width, I64Attr:$vocabulary, I64Attr:$ignore, DenseI64ArrayAttr:$block, DefaultValuedAttr<I64Attr, "0">:$padded);
}
def Rt_CountLabelsOp : Rt_Op<"count_labels"> {
  let summary = "*count = labels that are not ignored";
  let arguments = (ins B:$count, B:$labels, I64Attr:$n, I64Attr:$ignore);
  let assemblyFormat = "operands attr-dict `:` type(operands)";
}

//===------------------------------------------------------------------------------------------===//
// Copies and reductions
//===------------------------------------------------------------------------------------------===//

def Rt_CopyOp : Rt_Call<"copy", "stridedCopy",
    ["getDst()", "shape(getDstStrides())", "getSrc()", "shape(getSrcStrides())", "shape(getShape())", "getElementBytes()"]> {
  let summary = "dst[i...] = src[i...]";
  let arguments = (ins B:$dst, B:$src, DenseI64ArrayAttr:$dstStrides, DenseI64ArrayAttr:$srcStrides,
                       DenseI64ArrayAttr:$shape, I64Attr:$elementBytes);
}
def Rt_CopyRowsOp : Rt_Call<"copy_rows", "copyRows",
    ["getDst()", "getDstStride()", "getSrc()", "getSrcStride()", "getRows()", "getWidth()"]> {
  let summary = "copies rows between row strides";
  let arguments = (ins B:$dst, B:$src, I64Attr:$dstStride, I64Attr:$srcStride, I64Attr:$rows, I64Attr:$width);
}
def Rt_FillOp : Rt_Call<"fill", "fill", ["getDst()", "element(getDst(), getValue())", "getN()"]> {
  let summary = "dst[i] = value";
  let arguments = (ins B:$dst, F64Attr:$value, I64Attr:$n);
}
def Rt_StepNumberOp : Rt_Op<"step_number"> {
  let summary = "*number = the number of the current update, from 1";
  let arguments = (ins B:$number);
  let assemblyFormat = "$number attr-dict `:` type($number)";
}
def Rt_FirstIndexOp : Rt_Op<"first_index"> {
  let summary = "*first = (this rank's number over the mesh axes numbered `axes`, outermost first) * shard";
  let description = "With `behind`, the number is that of the rank so many places before this one along the one axis, a ring. A shard of several `blocks` has a number for each, odd ones counted backwards.";
  let arguments = (ins B:$first, DenseI64ArrayAttr:$axes, DenseI64ArrayAttr:$sizes, I64Attr:$shard, DefaultValuedAttr<I64Attr, "0">:$behind,
                       DefaultValuedAttr<I64Attr, "1">:$blocks);
  let assemblyFormat = "$first $axes $sizes `times` $shard (`behind` $behind^)? (`in` $blocks^ `blocks`)? attr-dict `:` type($first)";
}
def Rt_RandomKeyOp : Rt_Op<"random_key"> {
  let summary = "*key = the key of this step's random numbers";
  let arguments = (ins B:$key);
  let assemblyFormat = "$key attr-dict `:` type($key)";
}
def Rt_FirstElementOp : Rt_Op<"first_element"> {
  let summary = "*index = the rank's coordinates along `axes` (numbers of mesh axes) times `strides`, added";
  let arguments = (ins B:$index, DenseI64ArrayAttr:$axes, DenseI64ArrayAttr:$strides);
  let assemblyFormat = "$index attr-dict `:` type($index)";
}
def Rt_IotaOp : Rt_Op<"iota"> {
  let summary = "dst[i] = start + i * step, a loop in the program's text";
  let arguments = (ins B:$dst, F64Attr:$start, F64Attr:$step, I64Attr:$n);
  let assemblyFormat = "$dst attr-dict `:` type($dst)";
}
def Rt_AccumulateOp : Rt_Call<"accumulate", "accumulate", ["getSum()", "getX()", "getN()"]> {
  let summary = "sum[i] += x[i]";
  let arguments = (ins B:$sum, B:$x, I64Attr:$n);
}
class Rt_Reduce<string mnemonic, string callee, string scratch = "0">
    : Rt_Call<mnemonic, callee, ["getY()", "getX()", "getOuter()", "getN()", "getInner()"], [], scratch> {
  let arguments = (ins B:$y, B:$x, I64Attr:$outer, I64Attr:$n, I64Attr:$inner);
}
defvar Rt_SumScratch = "getInner() == 1 ? 0 : columnSumScratch(getN(), getOuter() * getInner())";
def Rt_ReduceSumOp : Rt_Reduce<"reduce_sum", "reduceSum", Rt_SumScratch> { let summary = "sums of x[outer, n, inner] over n"; }
def Rt_ReduceMeanOp : Rt_Reduce<"reduce_mean", "reduceMean", Rt_SumScratch> { let summary = "means of x[outer, n, inner] over n"; }
def Rt_ReduceMaxOp : Rt_Reduce<"reduce_max", "reduceMax"> { let summary = "the max of x[outer, n, inner] over n"; }
def Rt_ColumnSumOp : Rt_Call<"column_sum", "columnSum",
    ["getY()", "getX()", "getRows()", "getWidth()", "getStride()", "\"Write::Set\""], [],
    "columnSumScratch(getRows(), getWidth())"> {
  let summary = "sums of x's columns: a bias gradient";
  let arguments = (ins B:$y, B:$x, I64Attr:$rows, I64Attr:$width, I64Attr:$stride);
}

//===------------------------------------------------------------------------------------------===//
// Initial values
//===------------------------------------------------------------------------------------------===//

class Rt_Initial<string mnemonic, string callee> : Rt_Call<mnemonic, callee,
    ["\"rank\"", "numbered(getOperation(), \"index\")", "getDst()", "filling(getMean(), getDeviation())",
     "source(getFileAttr(), numbered(getOperation(), \"offset\"), getElementAttr(), getVarintsAttr(), getTransposed())"], [], "0", ["index", "offset"]> {
  let description = [{
    Random numbers around `mean`, or the values at `offset` of the model's file, stored as `element` or as `varints` bytes of its
    bits; `transposed`: the file has the matrix's transpose.
  }];
  let arguments = (ins B:$dst, I64Attr:$index, F64Attr:$mean, F64Attr:$deviation, OptionalAttr<StrAttr>:$file,
                       OptionalAttr<I64Attr>:$offset, OptionalAttr<TypeAttr>:$element, OptionalAttr<I64Attr>:$varints, UnitAttr:$transposed);
}
def Rt_InitialValueOp : Rt_Initial<"initial_value", "initialValue"> {
  let summary = "this rank's shard of the initial value of parameter number `index`, which --init chooses";
}
def Rt_InitialMasterOp : Rt_Initial<"initial_master", "initialMaster"> {
  let summary = "the same in 32 bits, for the parameter whose master is optimizer state number `index`";
}

//===------------------------------------------------------------------------------------------===//
// Updates, in place
//===------------------------------------------------------------------------------------------===//

def Rt_UpdateOp : Rt_Op<"update", [CallInterface, AttrSizedOperandSegments, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "an optimizer's step: a call of its kernel; with a `tile`, the host runs it tile by tile";
  let description = [{
    `values` are the parameter, its states, its rounded value if the update `rounds`, and the gradient; `pointers` are the scalars in
    memory; `staging` is present if the host runs the update. `scalars` are the kernel's, as the target's C++, in which each `{}` is
    the next of `pointers`. `rounding` is the kernel's, which rt-to-emitc converts before its calls.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<B>:$values, Variadic<B>:$pointers, Optional<B>:$staging, I64Attr:$n,
                       StrArrayAttr:$scalars, I64Attr:$tile, BoolAttr:$parameterOnHost,
                       OptionalAttr<Rt_RoundingAttr>:$rounding);
  let assemblyFormat = [{
    $kernel `(` $values `)` $n `with` $scalars `at` `(` $pointers `)` `tile` $tile (`staging` $staging^)? `on_host`
    $parameterOnHost (`rounds` $rounding^)? attr-dict `:` type($values) (`at` type($pointers)^)? (`staging` type($staging)^)?
  }];
  let extraClassDeclaration = [{
    ::llvm::StringRef getCallee() { return getTile() ? "updateOnHost" : getKernel(); }
    ::llvm::SmallVector<::partita::rt::CallArgument> getCallArguments(const ::partita::rt::Target &target);
    int64_t getScratchBytes();
  }];
}
/// A call over rows [first, first + count) of a table of tensors.
class Rt_OverTensors<string mnemonic, string callee, list<Trait> traits = []>
    : Rt_Op<mnemonic, traits # [CallInterface, DataInterface, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  string declaration = Rt_Data<["first"]>.declaration # [{
    ::llvm::SmallVector<::partita::rt::CallArgument> getCallArguments(const ::partita::rt::Target &target);
  }] # !if(!empty(callee), "", [{
    ::llvm::StringRef getCallee() { return "}] # callee # [{"; }
  }]);
  let extraClassDeclaration = declaration;
}
def Rt_UpdateAllOp : Rt_OverTensors<"update_all", ""> {
  let summary = "an optimizer's step for rows of a table of tensors, in one call of its kernel";
  let description = [{
    The table's columns are the kernel's values. Each of `steps` is a list of the kernel's scalars, as the target's C++, in which each `{}` is
    the next of `pointers`; a row says which list it uses. Created by `gather-updates` from `rt.update`.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, FlatSymbolRefAttr:$tensors, I64Attr:$first, I64Attr:$count, ArrayAttr:$steps,
                       Variadic<B>:$pointers);
  let assemblyFormat = [{
    $kernel `over` $tensors $first $count `with` $steps `at` `(` $pointers `)` attr-dict (`:` type($pointers)^)?
  }];
  let extraClassDeclaration = declaration # [{
    ::llvm::StringRef getCallee();
    /// The names of the function that applies the kernel over a table, and of the struct of its scalars.
    static ::std::string calleeOf(::llvm::StringRef kernel) { return (kernel + "_all").str(); }
    static ::std::string stepOf(::llvm::StringRef kernel) { return (kernel + "_step").str(); }
  }];
  let hasVerifier = 1;
}
def Rt_SquareSumAllOp : Rt_OverTensors<"square_sum_all", "squareSum"> {
  let summary = "the sum of squares of each tensor in a column of the table";
  let arguments = (ins B:$sum, FlatSymbolRefAttr:$tensors, I64Attr:$column, I64Attr:$first, I64Attr:$count);
  let assemblyFormat = "$sum `of` $tensors $column $first $count attr-dict `:` type($sum)";
  let extraClassDeclaration = declaration # [{
    int64_t getScratchBytes();
  }];
}
def Rt_FirstNonfiniteAllOp : Rt_OverTensors<"first_nonfinite_all", "firstNonfinite"> {
  let summary = "reports the first parameter of these rows whose sum in `squares` is not finite";
  let arguments = (ins B:$squares, FlatSymbolRefAttr:$tensors, I64Attr:$first, I64Attr:$count);
  let assemblyFormat = "$squares `for` $tensors $first $count attr-dict `:` type($squares)";
}
def Rt_ExposeGradientsOp : Rt_OverTensors<"expose_gradients", "exposeGradients"> {
  let summary = "shows the tensors of a column, complete gradients of the rows' parameters, to the host (--grads)";
  let arguments = (ins FlatSymbolRefAttr:$tensors, I64Attr:$column, I64Attr:$first, I64Attr:$count, DenseI64ArrayAttr:$flatOver);
  let assemblyFormat = "$tensors $column $first $count `flat` $flatOver attr-dict";
}
def Rt_SquareSumOp : Rt_Op<"square_sum", [CallInterface]> {
  let summary = "the sum of squares of each buffer; `counts` has their numbers of elements";
  let arguments = (ins B:$sum, Variadic<B>:$values, DenseI64ArrayAttr:$counts);
  let assemblyFormat = "$sum `of` $values $counts attr-dict `:` type(operands)";
  let extraClassDeclaration = [{
    ::llvm::StringRef getCallee() { return "squareSum"; }
    ::llvm::SmallVector<::partita::rt::CallArgument> getCallArguments(const ::partita::rt::Target &target);
    int64_t getScratchBytes();
  }];
}
def Rt_NormOp : Rt_Op<"norm", [CallInterface]> {
  let summary = "the square root of the sum of all elements of the buffers; `counts` has their numbers of elements";
  let arguments = (ins B:$norm, Variadic<B>:$squares, DenseI64ArrayAttr:$counts);
  let assemblyFormat = "$norm `of` $squares $counts attr-dict `:` type(operands)";
  let extraClassDeclaration = [{
    ::llvm::StringRef getCallee() { return "rootOfSum"; }
    ::llvm::SmallVector<::partita::rt::CallArgument> getCallArguments(const ::partita::rt::Target &target);
    int64_t getScratchBytes() { return 8; }
  }];
}
def Rt_FirstNonfiniteOp : Rt_Op<"first_nonfinite", [CallInterface]> {
  let summary = "reports the first parameter whose sum in `squares` is not finite; `counts` has the buffers' numbers of elements";
  let description = "`parameters` has, for each of these sums, its parameter's number in the program.";
  let arguments = (ins Variadic<B>:$squares, DenseI64ArrayAttr:$counts, DenseI64ArrayAttr:$parameters);
  let assemblyFormat = "$squares $counts `for` $parameters attr-dict `:` type(operands)";
  let extraClassDeclaration = [{
    ::llvm::StringRef getCallee() { return "firstNonfinite"; }
    ::llvm::SmallVector<::partita::rt::CallArgument> getCallArguments(const ::partita::rt::Target &target);
  }];
}
def Rt_ClipOp : Rt_Call<"clip", "clipScale", ["getScale()", "getNorm()", "target.hyper(\"gradientClip\", getMaxNormAttr())"]> {
  let summary = "the factor that clips gradients with this norm; without `max_norm`, the run sets the max";
  let arguments = (ins B:$scale, B:$norm, OptionalAttr<F64Attr>:$max_norm);
}
def Rt_RatioOp : Rt_Call<"ratio", "trustRatio", ["getRatio()", "getSquares()", "target.hyper(\"\", getLeastAttr())", "target.hyper(\"\", getMostAttr())"]> {
  let summary = "the root of one sum of squares over that of another, within bounds: LAMB's trust ratio";
  let arguments = (ins B:$ratio, B:$squares, F64Attr:$least, F64Attr:$most);
}
def Rt_FrozenRatioOp : Rt_Call<"frozen_ratio", "frozenRatio",
    ["getRatio()", "getCoefficient()", "getFactor()", "getSquares()", "getLargest()", "getT()", "orNull(getApply())",
     "frozenRatio({getFreeze(), getLeast(), getMost(), getCoeffBeta(), getFactorMin(), getFactorMax(), getFactorThreshold()})"]> {
  let summary = "1-bit LAMB's ratio; its states change in place (partita_rt/frozen_ratio.h)";
  let arguments = (ins B:$ratio, B:$coefficient, B:$factor, B:$squares, B:$largest, B:$t, Optional<B>:$apply, F64Attr:$freeze, F64Attr:$least, F64Attr:$most,
                       F64Attr:$coeff_beta, F64Attr:$factor_min, F64Attr:$factor_max, F64Attr:$factor_threshold);
}
def Rt_UnscaleOp : Rt_Call<"unscale", "unscale", ["getTo()", "getValue()", "getScale()"]> {
  let summary = "*to = *value / *scale";
  let arguments = (ins B:$to, B:$value, B:$scale);
}
def Rt_AllFiniteOp : Rt_Call<"all_finite", "allFinite", ["getFinite()", "getNorm()"]> {
  let summary = "*finite = is *norm finite?";
  let arguments = (ins B:$finite, B:$norm);
}
def Rt_UpdateScaleOp : Rt_Call<"update_scale", "updateScale",
    ["target.reported(\"scale\")", "getScale()", "getSteps()", "getLastOverflow()", "getHysteresisLeft()", "getSkipped()", "getFinite()",
     "scaler(getDynamic(), getWindow(), getHysteresis(), getConsecutive(), getMinimum())"]> {
  let summary = "the loss scale and its states after a step, in place; the rank reports them";
  let arguments = (ins B:$scale, B:$steps, B:$last_overflow, B:$hysteresis_left, B:$skipped, B:$finite, BoolAttr:$dynamic,
                       I64Attr:$window, I64Attr:$hysteresis, BoolAttr:$consecutive, F64Attr:$minimum);
}
def Rt_ExposeGradientOp : Rt_Call<"expose_gradient", "exposeGradient",
    ["\"rank\"", "numbered(getOperation(), \"index\")", "getGradient()", "listing(getFlatOver())"], [], "0", ["index"]> {
  let summary = "shows parameter number `index`'s complete gradient, or its flat shard over these mesh axes, to the host (--grads)";
  let arguments = (ins B:$gradient, I64Attr:$index, DenseI64ArrayAttr:$flatOver);
}

#endif // PARTITA_RT_KERNELS
