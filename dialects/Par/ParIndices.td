//===- ParIndices.td - where a rank's shard lies ----------------------------------------------------===//
//
// Included by Par.td.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_PAR_INDICES
#define PARTITA_PAR_INDICES

def Par_FirstElementOp : Par_Op<"first_element", [Pure]> {
  let summary = "the row-major index, in the full tensor, of the first element of this rank's shard";
  let description = [{
    `of` is the shard's type. The result has one dimension per split dimension, with one number per shard.
    Created by `localize` of ops that depend on global indices; becomes arithmetic on the rank's coordinates.

        %0 = par.first_element of tensor<4x16xf32, #par.place<[8 @dp, 16]>> : tensor<1xi64, #par.place<[2 @dp]>>
  }];
  let arguments = (ins TypeAttrOf<AnyRankedTensor>:$of);
  let results = (outs AnyRankedTensor:$index);
  let assemblyFormat = "`of` $of attr-dict `:` type($index)";
  let extraClassDeclaration = [{
    /// For each mesh axis that splits the tensor, the increment of the index for one step along it.
    ::llvm::SmallVector<::std::pair<::mlir::StringAttr, int64_t>> strides();
  }];
}

def Par_FirstIndexOp : Par_Op<"first_index", [Pure]> {
  let summary = "the global index at which this rank's shard of a dimension begins";
  let description = [{
    `size` is that of the full dimension. The result has one element per shard, so its type shows which axes
    split the dimension, and each rank holds its own element:

        %first = par.first_index of 50304 : tensor<1xi64, #par.place<[2 @tp]>>   // 0 or 25152

    A shard of several blocks has one index per block:

        %first = par.first_index of 64 : tensor<2xi64, #par.place<[2 x 2 @cp mirrored]>>   // 0 and 48, or 16 and 32

    With `behind` it is where the shard begins of the rank that many places before this one on the axis, a ring: that of keys which
    have been shifted as often.

    Ops whose result depends on a global index take it as an operand. Created by their `localize`, and by `expand-ring`;
    becomes a kernel argument in the lower phase.
  }];
  let arguments = (ins I64Attr:$size, DefaultValuedAttr<I64Attr, "0">:$behind);
  let results = (outs 1DTensorOf<[I64]>:$result);
  let assemblyFormat = "`of` $size (`behind` $behind^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
}

#endif // PARTITA_PAR_INDICES
