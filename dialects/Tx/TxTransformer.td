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

include "dialects/Tx/TxAttention.td"

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
