//===- TxStructure.td - op table: constants, shapes, reductions -------------------------------------===//
//
// Their rules depend on attributes or types: TxRules.cpp.
//
//===------------------------------------------------------------------------------------------------===//

#ifndef PARTITA_TX_STRUCTURE
#define PARTITA_TX_STRUCTURE

include "dialects/Tx/TxBase.td"

class Tx_AttributeRuleOp<string mnemonic, list<Trait> traits = []> : Tx_Op<mnemonic, traits> {
  let shardRule = "";
}

def Tx_ConstantOp : Tx_AttributeRuleOp<"constant", [ConstantLike]> {
  let summary = "a value known at compile time";
  let description = [{
    Small, or a splat; weights are `train.parameter`. It may be split over any axis: each rank has a smaller
    splat or, for other values, has them in full and takes its shard (`localize`). The value's type has no
    encoding; a splat's result may have one.
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Tx_Tensor:$result);
  let assemblyFormat = "$value attr-dict `:` type($result)";
  let hasFolder = 1;
  let hasVerifier = 1;
  let moreDeclarations = [{ void localize(); }];
}

def Tx_IotaOp : Tx_AttributeRuleOp<"iota"> {
  let summary = "start, start + step, ...";
  let description = "Rule ` -> n^`: its values depend on the global index, so it is not split.";
  let arguments = (ins F64Attr:$start, F64Attr:$step);
  let results = (outs 1DTensorOf<[AnySignlessInteger, AnyFloat]>:$result);
  let assemblyFormat = "$start `,` $step attr-dict `:` type($result)";
}

def Tx_ReshapeOp : Tx_AttributeRuleOp<"reshape"> {
  let summary = "the same elements, row-major, in another shape";
  let arguments = (ins Tx_Tensor:$x);
  let results = (outs Tx_Tensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
  let moreDeclarations = "::llvm::SmallVector<::mlir::Value> splitForm(::mlir::OpBuilder &builder, int64_t parts);";
  let gradient = [{ return {ReshapeOp::create(g.builder, getLoc(), par::cotangentType(getX().getType()), g.dy())}; }];
  let hasFolder = 1;
  let hasCanonicalizeMethod = 1;
  let hasVerifier = 1;
}

def Tx_TransposeOp : Tx_AttributeRuleOp<"transpose"> {
  let summary = "dimension i of the result is dimension permutation[i] of x";
  let arguments = (ins Tx_Tensor:$x, DenseI64ArrayAttr:$permutation);
  let results = (outs Tx_Tensor:$result);
  let assemblyFormat = "$x $permutation attr-dict `:` type($x) `->` type($result)";
  let gradient = [{
    SmallVector<int64_t> inverse(getPermutation().size());
    for (auto [i, p] : llvm::enumerate(getPermutation()))
      inverse[p] = i;
    return {TransposeOp::create(g.builder, getLoc(), par::cotangentType(getX().getType()), g.dy(), inverse)};
  }];
  let hasFolder = 1;
  let hasCanonicalizeMethod = 1;
  let hasVerifier = 1;
}

def Tx_BroadcastOp : Tx_AttributeRuleOp<"broadcast"> {
  let summary = "repeats along new leading dimensions and dimensions of size one (numpy's rules)";
  let arguments = (ins Tx_Tensor:$x);
  let results = (outs Tx_Tensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
  let gradient = [{ return {g.sumTo(g.dy(), getX().getType())}; }];
  let hasFolder = 1;
  let hasVerifier = 1;
}

def Tx_SliceOp : Tx_AttributeRuleOp<"slice"> {
  let summary = "element offsets + i * strides; the sizes are the result's shape";
  let description = [{
    A dimension that is taken in full may be split. One that is cut into equal blocks may be split within the
    blocks: the slices of a fused projection are its blocks, and each block is split by heads.
  }];
  let arguments = (ins Tx_Tensor:$x, DenseI64ArrayAttr:$offsets, DenseI64ArrayAttr:$strides);
  let results = (outs Tx_Tensor:$result);
  let assemblyFormat = "$x $offsets `by` $strides attr-dict `:` type($x) `->` type($result)";
  let moreDeclarations = "void localize();";
  let gradient = [{
    return {PadOp::create(g.builder, getLoc(), par::cotangentType(getX().getType()), g.dy(), getOffsets(), getStrides())};
  }];
  let hasFolder = 1;
  let hasVerifier = 1;
}

def Tx_PadOp : Tx_AttributeRuleOp<"pad"> {
  let summary = "slice's transpose: element i is at offsets + i * strides; zero elsewhere";
  let arguments = (ins Tx_Tensor:$x, DenseI64ArrayAttr:$offsets, DenseI64ArrayAttr:$strides);
  let results = (outs Tx_Tensor:$result);
  let assemblyFormat = "$x $offsets `by` $strides attr-dict `:` type($x) `->` type($result)";
  let moreDeclarations = "void localize();";
  let gradient = [{
    return {SliceOp::create(g.builder, getLoc(), par::cotangentType(getX().getType()), g.dy(), getOffsets(), getStrides())};
  }];
  let hasVerifier = 1;
}

def Tx_ConcatOp : Tx_AttributeRuleOp<"concat"> {
  let summary = "operands one after another along dim";
  let arguments = (ins Variadic<Tx_Tensor>:$inputs, I64Attr:$dim);
  let results = (outs Tx_Tensor:$result);
  let assemblyFormat = "$inputs `along` $dim attr-dict `:` functional-type($inputs, $result)";
  let gradient = [{
    SmallVector<Value> slices;
    SmallVector<int64_t> offsets(getType().getRank(), 0), strides(getType().getRank(), 1);
    for (Value input : getInputs()) {
      slices.push_back(SliceOp::create(g.builder, getLoc(), par::cotangentType(input.getType()), g.dy(), offsets, strides));
      offsets[getDim()] += cast<RankedTensorType>(input.getType()).getDimSize(getDim());
    }
    return slices;
  }];
  let hasFolder = 1;
  let hasVerifier = 1;
}

class Tx_Repeated<string mnemonic> : Tx_AttributeRuleOp<mnemonic> {
  let arguments = (ins Tx_Float:$x, Optional<Tx_Int>:$first, I64Attr:$dim, I64Attr:$times);
  let results = (outs Tx_Float:$result);
  let assemblyFormat = "$x `times` $times `along` $dim (`from` $first^)? attr-dict `:` functional-type(operands, results)";
  let moreDeclarations = "void localize();";
  let hasVerifier = 1;
}
def Tx_RepeatOp : Tx_Repeated<"repeat"> {
  let summary = "each index of dimension dim, `times` times in a row";
  let description = [{
    [a, b] becomes [a, a, b, b]. Rule `~.. y^ .., @z -> .. z ..`: every rank has x in full and computes its
    shard of the result, which begins at `first` (`localize` adds the operand). Created by tx.attention's split
    form, where there are fewer key heads than ranks.
  }];
  let gradient = [{
    SmallVector<Value> flowing(getOperation()->getNumOperands());
    flowing[0] = RepeatSumOp::create(g.builder, getLoc(), par::cotangentType(getX().getType()), g.dy(), getFirst(),
                                     getDimAttr(), getTimesAttr());
    return flowing;
  }];
}
def Tx_RepeatSumOp : Tx_Repeated<"repeat_sum"> {
  let summary = "repeat's transpose: the sum of every `times` consecutive indices of dimension dim";
  let description = "A rank that has a shard of x adds it to a result that is zero elsewhere.";
  let gradient = [{
    SmallVector<Value> flowing(getOperation()->getNumOperands());
    flowing[0] = RepeatOp::create(g.builder, getLoc(), par::cotangentType(getX().getType()), g.dy(), getFirst(),
                                  getDimAttr(), getTimesAttr());
    return flowing;
  }];
}

class Tx_Reduce<string mnemonic> : Tx_AttributeRuleOp<mnemonic> {
  let arguments = (ins Tx_Tensor:$x, DenseI64ArrayAttr:$dims);
  let results = (outs Tx_Tensor:$result);
  let assemblyFormat = "$x $dims attr-dict `:` type($x) `->` type($result)";
  let hasVerifier = 1;
}
def Tx_ReduceSumOp : Tx_Reduce<"reduce_sum"> {
  let summary = "the sum over dims, which are dropped";
  let precision = "High";
  let gradient = [{ return {g.spread(g.dy(), getX().getType(), getDims())}; }];
  let hasFolder = 1;
}
def Tx_ReduceMeanOp : Tx_Reduce<"reduce_mean"> {
  let summary = "the mean over dims, which are dropped";
  let precision = "High";
  let gradient = [{
    int64_t count = 1;
    for (int64_t dim : getDims())
      count *= getX().getType().getDimSize(dim);
    Value scaled = g.op<MulOp>(g.dy(), g.splat(g.dy().getType(), 1.0 / count));
    return {g.spread(scaled, getX().getType(), getDims())};
  }];
}
def Tx_ReduceMaxOp : Tx_Reduce<"reduce_max"> {
  let summary = "the max over dims, which are dropped; ties share the gradient";
  let precision = "High";
  let gradient = [{
    Type type = getX().getType();
    Value hit = g.op<EqualOp>(getX(), g.spread(getResult(), type, getDims()));
    Value ones = g.op<SelectOp>(hit, g.splat(type, 1.0), g.splat(type, 0.0));
    Value count = ReduceSumOp::create(g.builder, getLoc(), getType(), ones, getDims());
    return {g.op<MulOp>(ones, g.spread(g.op<DivOp>(g.dy(), count), type, getDims()))};
  }];
}

#endif // PARTITA_TX_STRUCTURE
