//===- TxTransformer.td - op table: what a Transformer is made of -----------------------------------===//

#ifndef PARTITA_TX_TRANSFORMER
#define PARTITA_TX_TRANSFORMER

include "dialects/Tx/TxBase.td"

//===------------------------------------------------------------------------------------------------===//
// Matrix products. The three of them are closed under differentiation.
//===------------------------------------------------------------------------------------------------===//

class Tx_Product<string mnemonic> : Tx_InferredOp<mnemonic> {
  let arguments = (ins Tx_Float:$a, Tx_Float:$b);
  let results = (outs Tx_Float:$result);
  let assemblyFormat = "$a `,` $b attr-dict `:` functional-type(operands, results)";
}

def Tx_MatMulOp : Tx_Product<"matmul"> {
  let summary = "a @ b: a [..., k], b [k, n]";
  let shardRule = "~* k+, ~k+ n -> * n";
  let gradient = [{ return {g.op<MatMulNTOp>(g.dy(), getB()), g.op<MatMulTNOp>(getA(), g.dy())}; }];
  let hasCanonicalizeMethod = 1;
}
def Tx_MatMulNTOp : Tx_Product<"matmul_nt"> {
  let summary = "a @ b^T: a [..., k], b [n, k]";
  let shardRule = "~* k+, ~n k+ -> * n";
  let gradient = [{ return {g.op<MatMulOp>(g.dy(), getB()), g.op<MatMulTNOp>(g.dy(), getA())}; }];
  let hasCanonicalizeMethod = 1;
}
def Tx_MatMulTNOp : Tx_Product<"matmul_tn"> {
  let summary = "a^T @ b over all leading dimensions: a [..., k], b [..., n] -> [k, n]";
  let description = "The gradient of a weight.";
  let shardRule = "~*+ k, ~*+ n -> k n";
  let gradient = [{ return {g.op<MatMulNTOp>(getB(), g.dy()), g.op<MatMulOp>(getA(), g.dy())}; }];
}
def Tx_BatchMatMulOp : Tx_Product<"batch_matmul"> {
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

def Tx_LayerNormOp : Tx_InferredOp<"layer_norm", [], "::mlir::getElementTypeOrSelf(operands[0]), ::mlir::getElementTypeOrSelf(operands[0]), ::mlir::getElementTypeOrSelf(operands[0])"> {
  let summary = "(x - mean) rstd w + b over the last dimension";
  let description = [{
    Ba, Kiros and Hinton, arXiv 1607.06450; rstd = 1 / sqrt(variance + epsilon), the variance biased.
    The mean and rstd of every row are results so that the backward pass can use them.
  }];
  let shardRule = "* n^, n^, n^ -> * n^, *, *";
  let arguments = (ins Tx_Float:$x, Tx_Float:$w, Tx_Float:$b, F64Attr:$epsilon);
  let results = (outs Tx_Float:$y, Tx_Float:$mean, Tx_Float:$rstd);
  let assemblyFormat = "$x `,` $w `,` $b `eps` $epsilon attr-dict `:` functional-type(operands, results)";
  let gradient = [{
    auto grad = LayerNormGradOp::create(g.builder, getLoc(), ValueRange{getX(), getW(), getMean(), getRstd(), g.dy()});
    return {grad.getDx(), grad.getDw(), grad.getDb()};
  }];
}
def Tx_LayerNormGradOp : Tx_InferredOp<"layer_norm_grad", [], "::mlir::getElementTypeOrSelf(operands[0]), ::mlir::getElementTypeOrSelf(operands[0]), ::mlir::getElementTypeOrSelf(operands[0])"> {
  let summary = "cotangents of x, w and b";
  let shardRule = "*+ n^, n^, *+, *+, ~*+ n^ -> * n^, n^, n^";
  let arguments = (ins Tx_Float:$x, Tx_Float:$w, Tx_Float:$mean, Tx_Float:$rstd, Tx_Float:$dy);
  let results = (outs Tx_Float:$dx, Tx_Float:$dw, Tx_Float:$db);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Tx_RmsNormOp : Tx_InferredOp<"rms_norm", [], "::mlir::getElementTypeOrSelf(operands[0]), ::mlir::getElementTypeOrSelf(operands[0])"> {
  let summary = "x rstd w over the last dimension";
  let description = [{
    Zhang and Sennrich, arXiv 1910.07467; rstd = 1 / sqrt(mean of x^2 + epsilon). The rstd of every row is
    a result so that the backward pass can use it.
  }];
  let shardRule = "* n^, n^ -> * n^, *";
  let arguments = (ins Tx_Float:$x, Tx_Float:$w, F64Attr:$epsilon);
  let results = (outs Tx_Float:$y, Tx_Float:$rstd);
  let assemblyFormat = "$x `,` $w `eps` $epsilon attr-dict `:` functional-type(operands, results)";
  let gradient = [{
    auto grad = RmsNormGradOp::create(g.builder, getLoc(), ValueRange{getX(), getW(), getRstd(), g.dy()});
    return {grad.getDx(), grad.getDw()};
  }];
}
def Tx_RmsNormGradOp : Tx_InferredOp<"rms_norm_grad", [], "::mlir::getElementTypeOrSelf(operands[0]), ::mlir::getElementTypeOrSelf(operands[0])"> {
  let summary = "cotangents of x and w";
  let shardRule = "*+ n^, n^, *+, ~*+ n^ -> * n^, n^";
  let arguments = (ins Tx_Float:$x, Tx_Float:$w, Tx_Float:$rstd, Tx_Float:$dy);
  let results = (outs Tx_Float:$dx, Tx_Float:$dw);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

//===------------------------------------------------------------------------------------------------===//
// Attention
//===------------------------------------------------------------------------------------------------===//

def Tx_AttentionOp : Tx_InferredOp<"attention", [], "::mlir::getElementTypeOrSelf(operands[0]), ::mlir::getElementTypeOrSelf(operands[0])"> {
  let summary = "softmax(scale q k^T [+ causal mask]) v, per batch element and head";
  let description = [{
    q [b, s, h, d], k [b, t, h, d], v [b, t, h, e] -> out [b, s, h, e] and, for the backward pass, the
    logarithm of the softmax's denominator lse [b, h, s]. `causal`: query i sees keys up to i + t - s.
    Kernels never store the s x t matrix (Dao et al., arXiv 2205.14135).
  }];
  let shardRule = "b s^ h d^, b t^ h d^, b t^ h e^ -> b s^ h e^, b h s^";
  let arguments = (ins Tx_Float:$q, Tx_Float:$k, Tx_Float:$v, F64Attr:$scale, UnitAttr:$causal);
  let results = (outs Tx_Float:$out, Tx_Float:$lse);
  let assemblyFormat = "$q `,` $k `,` $v `scale` $scale (`causal` $causal^)? attr-dict `:` functional-type(operands, results)";
  let gradient = [{
    auto grad = AttentionGradOp::create(g.builder, getLoc(),
        ValueRange{getQ(), getK(), getV(), getOut(), getLse(), g.dy()}, (*this)->getAttrs());
    return {grad.getDq(), grad.getDk(), grad.getDv()};
  }];
}
def Tx_AttentionGradOp : Tx_InferredOp<"attention_grad", [], "::mlir::getElementTypeOrSelf(operands[0]), ::mlir::getElementTypeOrSelf(operands[0]), ::mlir::getElementTypeOrSelf(operands[0])"> {
  let summary = "cotangents of q, k and v";
  let shardRule = "b s^ h d^, b t^ h d^, b t^ h e^, b s^ h e^, b h s^, ~b s^ h e^ -> b s^ h d^, b t^ h d^, b t^ h e^";
  let arguments = (ins Tx_Float:$q, Tx_Float:$k, Tx_Float:$v, Tx_Float:$out, Tx_Float:$lse, Tx_Float:$dout,
                       F64Attr:$scale, UnitAttr:$causal);
  let results = (outs Tx_Float:$dq, Tx_Float:$dk, Tx_Float:$dv);
  let assemblyFormat = "operands `scale` $scale (`causal` $causal^)? attr-dict `:` functional-type(operands, results)";
}

//===------------------------------------------------------------------------------------------------===//
// Embedding and loss
//===------------------------------------------------------------------------------------------------===//

def Tx_EmbeddingOp : Tx_InferredOp<"embedding"> {
  let summary = "row ids of the table";
  let description = [{
    A rank that has only the rows from `first` on (`localize` adds the operand) yields zeros where the id
    names another rank's row: the sum over ranks is the row (Shoeybi et al., arXiv 1909.08053).
  }];
  let shardRule = "~v+ h, *, @v -> * h";
  let arguments = (ins Tx_Tensor:$table, Tx_Int:$ids, Optional<Tx_Int>:$first);
  let results = (outs Tx_Tensor:$result);
  let assemblyFormat = "$table `,` $ids (`from` $first^)? attr-dict `:` functional-type(operands, results)";
  let moreDeclarations = "void localize();";
  let gradient = [{
    Value dtable = EmbeddingGradOp::create(g.builder, getLoc(), par::cotangentType(getTable().getType()), getIds(), g.dy(), getFirst());
    SmallVector<Value> result(getOperation()->getNumOperands());
    result[0] = dtable;
    return result;
  }];
}
def Tx_EmbeddingGradOp : Tx_Op<"embedding_grad"> {
  let summary = "adds every row of dy to the row of a zero table that its id names";
  let description = "Ids outside the rows from `first` on belong to other ranks.";
  let shardRule = "*+, ~*+ h, @v -> v h";
  let arguments = (ins Tx_Int:$ids, Tx_Float:$dy, Optional<Tx_Int>:$first);
  let results = (outs Tx_Float:$dtable);
  let assemblyFormat = "$ids `,` $dy (`from` $first^)? attr-dict `:` functional-type(operands, results)";
  let moreDeclarations = "void localize();";
  let gradient = [{
    SmallVector<Value> result(getOperation()->getNumOperands());
    result[1] = EmbeddingOp::create(g.builder, getLoc(), par::cotangentType(getDy().getType()), g.dy(), getIds(), getFirst());
    return result;
  }];
}

def Tx_CrossEntropyOp : Tx_InferredOp<"cross_entropy", [], "::mlir::getElementTypeOrSelf(operands[0]), ::mlir::getElementTypeOrSelf(operands[0])"> {
  let summary = "per token: log(sum(exp(logits))) - logits[label]; 0 where the label is ignore_index";
  let description = [{
    logits [..., n], labels [...] -> loss [...] and, for the backward pass, the logarithm of the
    softmax's denominator. Not a mean: the objective divides by the global count of tokens.

    Over a split vocabulary it becomes, per rank, tx.log_sum_exp of its piece, the logarithm of their sum, and
    tx.token_loss: no logits are gathered, two numbers per token and the loss are reduced.
  }];
  let shardRule = "* n!, * -> *, *";
  let arguments = (ins Tx_Float:$logits, Tx_Int:$labels, I64Attr:$ignore_index);
  let results = (outs Tx_Float:$loss, Tx_Float:$lse);
  let assemblyFormat = "$logits `,` $labels `ignore` $ignore_index attr-dict `:` functional-type(operands, results)";
  let moreDeclarations = "::llvm::SmallVector<::mlir::Value> splitForm(::mlir::OpBuilder &builder, int64_t parts);";
  let gradient = [{
    return {CrossEntropyGradOp::create(g.builder, getLoc(), ValueRange{getLogits(), getLabels(), getLse(), g.dy()},
                                       (*this)->getAttrs()), Value()};
  }];
}
def Tx_CrossEntropyGradOp : Tx_InferredOp<"cross_entropy_grad"> {
  let summary = "dloss (softmax(logits) - onehot(label)); 0 where the label is ignore_index";
  let description = "`lse` is that of the whole row, `first` the index at which the logits of this rank begin.";
  let shardRule = "* n, *, *, ~*, @n -> * n";
  let arguments = (ins Tx_Float:$logits, Tx_Int:$labels, Tx_Float:$lse, Tx_Float:$dloss, Optional<Tx_Int>:$first, I64Attr:$ignore_index);
  let results = (outs Tx_Float:$dlogits);
  let assemblyFormat = "$logits `,` $labels `,` $lse `,` $dloss (`from` $first^)? `ignore` $ignore_index attr-dict `:` functional-type(operands, results)";
  let moreDeclarations = "void localize();";
}

def Tx_LogSumExpOp : Tx_InferredOp<"log_sum_exp"> {
  let summary = "log(sum(exp(x))) over the last dimension, without overflow";
  let shardRule = "* n^ -> *";
  let arguments = (ins Tx_Float:$x);
  let results = (outs Tx_Float:$result);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
  let gradient = [{
    Type type = getX().getType();
    int64_t last = getX().getType().getRank() - 1;
    Value softmax = g.op<ExpOp>(g.op<SubOp>(getX(), g.spread(getResult(), type, {last})));
    return {g.op<MulOp>(softmax, g.spread(g.dy(), type, {last}))};
  }];
}

def Tx_TokenLossOp : Tx_InferredOp<"token_loss"> {
  let summary = "tx.cross_entropy's loss with lse given; over a split vocabulary the sum of what the ranks have";
  let description = [{
    lse - logits[label] on the rank that has the label, else 0; 0 where the label is ignore_index. `lse` [...]
    must be the logarithm of the sum of exponentials of the whole row: the gradient in the logits contains
    what flows through it, so none flows into `lse`. Created by tx.cross_entropy's split form.
  }];
  let shardRule = "* n+, *, *, @n -> *";
  let arguments = (ins Tx_Float:$logits, Tx_Int:$labels, Tx_Float:$lse, Optional<Tx_Int>:$first, I64Attr:$ignore_index);
  let results = (outs Tx_Float:$loss);
  let assemblyFormat = "$logits `,` $labels `,` $lse (`from` $first^)? `ignore` $ignore_index attr-dict `:` functional-type(operands, results)";
  let moreDeclarations = "void localize();";
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
