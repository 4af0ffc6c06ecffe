//===- ParChunks.td - chunks of what a rank holds -------------------------------------------------===//
//
// Included by Par.td.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_PAR_CHUNKS
#define PARTITA_PAR_CHUNKS

def Par_ChunkOp : Par_Op<"chunk", [Pure]> {
  let summary = "one of equal chunks of what this rank holds, along a dimension";
  let description = [{
    Each rank takes the same rows of its own shard, so the chunks of a sharded value are no slices of the full value, as those of `tx.slice`
    are: chunk 0 of 2 of `[8 @dp]` over two ranks has rows 0, 1, 4 and 5. The placement of a chunk is that of the operand with a
    dimension that is `count` times smaller; equal blocks along it become fewer, not smaller, so each rank must have a multiple of `count`.

    Created by `decompose-matmuls`; becomes a view of the operand's memory. `par.join` is its inverse.

        %0 = par.chunk %x 0 of 2 along 0 : tensor<4x16xf32, #par.place<[8 @dp, 16]>> -> tensor<2x16xf32, #par.place<[4 @dp, 16]>>
  }];
  let arguments = (ins AnyRankedTensor:$value, I64Attr:$index, I64Attr:$count, I64Attr:$dim);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$value $index `of` $count `along` $dim attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Returns the type of a chunk of `full`; null if `full` has no such chunks on this mesh.
    static ::mlir::RankedTensorType typeOf(::mlir::RankedTensorType full, int64_t count, int64_t dim, ::partita::par::MeshAttr mesh);
    /// Returns the index of the chunk's first element in the operand, by dimension.
    ::llvm::SmallVector<int64_t> getOffsets();
  }];
}

def Par_JoinOp : Par_Op<"join", [Pure]> {
  let summary = "all chunks of what this rank holds, one after another along a dimension";
  let description = [{
    The inverse of `par.chunk`: operand i is chunk i of the result. Created by `decompose-matmuls`; costs nothing if the operands are
    computed in the result's memory, which `plan-memory` arranges.

        %1 = par.join %0, %2 along 0 : tensor<2x16xf32, #par.place<[4 @dp, 16]>>, tensor<2x16xf32, #par.place<[4 @dp, 16]>>
           -> tensor<4x16xf32, #par.place<[8 @dp, 16]>>
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$chunks, I64Attr:$dim);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$chunks `along` $dim attr-dict `:` type($chunks) `->` type($result)";
  let hasVerifier = 1;
}

#endif // PARTITA_PAR_CHUNKS
