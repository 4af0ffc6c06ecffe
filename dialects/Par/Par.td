//===- Par.td - meshes, placements, conjugates, collectives --------------------------------------===//
//
// What a rank holds of a value, per mesh axis, and what moves between ranks. Knows neither models nor
// NCCL. README.md in this folder says why it is as it is.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_PAR
#define PARTITA_PAR

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "dialects/Interfaces/Interfaces.td"

def Par_Dialect : Dialect {
  let name = "par";
  let cppNamespace = "::partita::par";
  let summary = "mesh, placements, conjugate pairs and collectives";
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    /// The module's mesh: `par.mesh = #par.mesh<dp = 2>`.
    static constexpr ::llvm::StringLiteral kMesh = "par.mesh";
    /// On a function without cotangents (inference, or after differentiation): `replicated` and
    /// `invariant` are one there.
    static constexpr ::llvm::StringLiteral kNoCotangents = "par.no_cotangents";
  }];
}

//===----------------------------------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------------------------------===//

class Par_Attr<string name, string mnem> : AttrDef<Par_Dialect, name> { let mnemonic = mnem; }

def Par_MeshAttr : Par_Attr<"Mesh", "mesh"> {
  let summary = "mesh axes and their sizes, outermost first";
  let description = [{
    `#par.mesh<dp = 4, tp = 2>`: eight ranks, rank = dp * 2 + tp. On the module as `par.mesh`.
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$axes, ArrayRefParameter<"int64_t">:$sizes);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The axis's size; 1 for an axis that the mesh does not have.
    int64_t sizeOf(::llvm::StringRef axis) const;
    bool hasAxis(::llvm::StringRef axis) const;
    int64_t rankCount() const;
    /// The rank's coordinate along `axis`.
    int64_t coordinate(int64_t rank, ::llvm::StringRef axis) const;
    /// The ranks that differ from `rank` along `axis` alone, in the order of the axis.
    ::llvm::SmallVector<int64_t> group(int64_t rank, ::llvm::StringRef axis) const;
    /// The mesh of `op`'s module; a mesh without axes (one rank) where none is set.
    static MeshAttr of(::mlir::Operation *op);
  }];
}

def Par_PlacementAttr : Par_Attr<"Placement", "place"> {
  let summary = "what a rank holds of a value, and of its cotangent, per mesh axis";
  let description = [{
    The encoding of a tensor type. The tensor's shape is the rank's piece; the placement carries the
    whole shape and, for each dimension, the axes that split it, outermost first.

        tensor<4x128xf32, #par.place<[8 @dp, 128]>>           sharded over dp along dimension 0
        tensor<8x48xf32, #par.place<[8, 3 x 32 @tp]>>         each of three blocks of 32 sharded over tp
        tensor<8x128xf32, #par.place<[8, 128], partial [dp]>> the value is the sum over dp's ranks
        tensor<8xf32, #par.place<[8], max [tp]>>         the value is the maximum over tp's ranks
        tensor<96xf32, #par.place<[8, 48 @tp], flat [dp]>>    dp splits the elements of tp's piece, in their order

    | placement  | value                       | cotangent                 |
    |------------|-----------------------------|---------------------------|
    | invariant  | same on every rank          | same on every rank        |
    | replicated | same on every rank          | partial: each has a share |
    | sharded    | a piece                     | the same piece            |
    | flat       | a piece of the elements     | the same piece            |
    | partial    | the sum over ranks          | invariant                 |
    | max   | the maximum over ranks      | none: no gradient flows   |

    `splits` has, per dimension, a list of axes; the number of blocks that an axis splits, where it is
    not one, stands in front of it. An axis that is not mentioned is invariant; a tensor without encoding is invariant on all axes.

    `flat` axes, outermost first, split what the others leave as if it had one dimension, in equal pieces: the last
    ones' padding behind the end is zero. Such a tensor has one dimension, whatever the whole has; only ops that
    treat each element alone take it (ZeRO's pieces of parameters, gradients and states).
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::ArrayAttr":$splits,
                        ArrayRefParameter<"::mlir::StringAttr">:$replicated,
                        ArrayRefParameter<"::mlir::StringAttr">:$partial,
                        ArrayRefParameter<"::mlir::StringAttr">:$max,
                        ArrayRefParameter<"::mlir::StringAttr">:$flat);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Par_SeedAttr : Par_Attr<"Seed", "seed"> {
  let summary = "who asked for the splits of an axis";
  let description = [{
    `kind` is who: `batch`, `analysis`, `user`, `annotation`, `sequence`; `words` what was said, in words for the reader, and
    `parameters` are those that are split together for it.

        #par.seed<"analysis" "" of ["up@1", "down@0"]>
        #par.seed<"user" "up=tp@1" of ["up@1", "down@0"]>

    As `par.seeds`, a dictionary by axis, on a parameter, from the seeds to `partition-materialize`; from there on part of
    `#par.cause`.
  }];
  let parameters = (ins "::mlir::StringAttr":$kind, "::mlir::StringAttr":$words, "::mlir::ArrayAttr":$parameters);
  let assemblyFormat = "`<` $kind $words `of` $parameters `>`";
}

def Par_StreamAttr : Par_Attr<"Stream", "stream"> {
  let summary = "the communicator of a mesh axis on which collectives run beside the computation";
  let description = [{
    `#par.stream<"tp">`, or, for collectives that begin ahead of their use, `#par.stream<"dp" ahead>`: a communicator of their own,
    so that they wait for no reduction. The stream of an AsyncStartInterface.
  }];
  let parameters = (ins "::mlir::StringAttr":$axis, "bool":$ahead);
  let hasCustomAssemblyFormat = 1;
}

def Par_CauseAttr : Par_Attr<"Cause", "cause"> {
  let summary = "what made a conjugate or a move necessary";
  let description = [{
    The letter of an op's rule that an axis splits, the op's node in the model, the seed of the split, and where in the
    model's layers the op stands. It is in the array `par.causes` of what `partition-materialize` inserts,
    and of whatever comes of it: its backward half, a bucket, a start (dialects/Interfaces/Provenance.h). Read it with
    `par::causesOf`.

    | role      | says                                                                       |
    |-----------|----------------------------------------------------------------------------|
    | sum       | the letter is summed away: each rank has a part of the sum                 |
    | max       | the same of a maximum                                                      |
    | share     | an operand lacks the letter: each rank has a share of its cotangent        |
    | parameter | the same of a value that depends on parameters alone                       |
    | whole     | an operand is in pieces, and the op splits another letter                  |
    | piece     | an operand is whole, and the op wants its piece                            |
    | block     | the same of a block of a parameter whose other blocks stay whole           |
    | update    | each rank updates the piece of the parameter whose states it keeps         |
    | kept      | each rank keeps a piece of the parameter                                   |
    | saved     | each rank keeps a piece of what enters a recomputed layer; it has no letter |
    | held      | several pipeline stages hold the parameter; no letter, as of the next two  |
    | norm      | a norm is of all pipeline stages' gradients                                |
    | report    | every rank reports what one pipeline stage has                             |

    `layer` is the number of the layer (partita/Analysis/Layers.h), -1 in front of the first one or where there
    is none, -2 behind the last one, -3 outside of the loop over micro-batches; `layers` is how many the function has.
  }];
  let parameters = (ins "::mlir::StringAttr":$role, "::mlir::StringAttr":$letter, "::mlir::StringAttr":$rule,
                        "::mlir::StringAttr":$op, "::mlir::StringAttr":$node, "int64_t":$layer, "int64_t":$layers,
                        OptionalParameter<"::partita::par::SeedAttr">:$seed);
  let assemblyFormat = "`<` $role $letter `in` $rule `of` $op $node `layer` $layer `of` $layers (`seed` $seed^)? `>`";
  let extraClassDeclaration = [{
    static constexpr int64_t kBefore = -1, kAfter = -2, kOnce = -3;
  }];
}

//===----------------------------------------------------------------------------------------------===//
// Conjugates: strategy ops, created by partition
//===----------------------------------------------------------------------------------------------===//

class Par_Op<string mnemonic, list<Trait> traits = []> : Op<Par_Dialect, mnemonic, traits>;

class Par_Conjugate<string mnemonic> : Par_Op<mnemonic,
    [Pure, DeclareOpInterfaceMethods<DifferentiableInterface>]> {
  let arguments = (ins AnyRankedTensor:$value, StrAttr:$axis);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$value `over` $axis attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
}

def Par_FOp : Par_Conjugate<"f"> {
  let summary = "identity forward, all-reduce backward: invariant -> replicated";
  let hasCanonicalizeMethod = 1;
  let description = [{
    Megatron's `f` at the entry of a column-parallel block, data parallelism's at every parameter: the
    ranks go on with the same value but different work, so each has a share of its cotangent.
    Created by `partition-materialize`; removed by `expand-conjugates`, after differentiation.
  }];
}

def Par_GOp : Par_Conjugate<"g"> {
  let summary = "all-reduce forward, identity backward: partial -> invariant";
  let description = [{
    Megatron's `g` at the exit of a row-parallel block; the mean loss under data parallelism.
    Created by `partition-materialize`; removed by `expand-conjugates`, after differentiation.
  }];
}

def Par_MaxOp : Par_Conjugate<"max"> {
  let summary = "all-reduce with the maximum forward, no gradient: max -> invariant";
  let description = [{
    The stable softmax's maximum over a split dimension: the result does not depend on it
    mathematically, so nothing flows back.
    Created by `partition-materialize`; removed by `expand-conjugates`, after differentiation.
  }];
}

//===----------------------------------------------------------------------------------------------===//
// Pieces and wholes. Strategy and mechanism alike: each is the other's backward half.
//===----------------------------------------------------------------------------------------------===//

class Par_Move<string mnemonic, list<Trait> traits = []> : Par_Op<mnemonic,
    traits # [Pure, DeclareOpInterfaceMethods<DifferentiableInterface>]> {
  let arguments = (ins AnyRankedTensor:$value, StrAttr:$axis, I64Attr:$dim, DefaultValuedAttr<I64Attr, "1">:$blocks,
                       OptionalAttr<StrAttr>:$reason);
  let results = (outs AnyRankedTensor:$result);
  let hasVerifier = 1;
  string whole = ?;
  string piece = ?;
  string declaration = [{
    /// The types of the whole value and of one rank's piece.
    ::mlir::RankedTensorType getWhole() { return ::mlir::cast<::mlir::RankedTensorType>(}] # whole # [{.getType()); }
    ::mlir::RankedTensorType getPiece() { return ::mlir::cast<::mlir::RankedTensorType>(}] # piece # [{.getType()); }
    /// How the piece lies in the whole: `blocks` times, `count` elements of each rank after one another.
    ::partita::par::Interleaving getInterleaving() {
      return ::partita::par::interleaving(*this, getPiece(), getAxisAttr(), getDim(), getBlocks());
    }
  }];
  let extraClassDeclaration = declaration;
}

/// Between ranks. The whole is as many pieces as there are ranks: the verifier says so.
class Par_Exchange<string mnemonic, string kind> : Par_Move<mnemonic, [CollectiveInterface]> {
  let extraClassDeclaration = declaration # CollectiveOf<kind>.declaration # [{
    int64_t getWireBytes() { return ::partita::bytesOf(getWhole()); }
  }];
}

def Par_AllGatherOp : Par_Exchange<"all_gather", "AllGather"> {
  let summary = "all pieces of a dimension: sharded -> replicated or invariant";
  let description = [{
    The axis splits `dim`, within each of `blocks` equal blocks of it. The result's placement decides
    the adjoint: ranks that go on with different work (replicated) have a share of the cotangent each,
    so it is a `reduce_scatter`; where all do the same (invariant) it is a `narrow`.

        %1 = par.all_gather %0 over "tp" along 1
           : tensor<4x8x32xf32, #par.place<[4, 16 @tp, 32]>> -> tensor<4x16x32xf32, #par.place<[4, 16, 32], replicated [tp]>>

    Created by `partition-seed-sequence` (before placements: then all types are whole), as the gradient
    of `reduce_scatter` and `narrow`, and by `gather-again` (`again`: for the backward pass, in place of
    the forward pass's, so that nothing whole is kept). Becomes an `rt` call in the lower phase.
  }];
  let arguments = (ins AnyRankedTensor:$value, StrAttr:$axis, I64Attr:$dim, DefaultValuedAttr<I64Attr, "1">:$blocks,
                       OptionalAttr<StrAttr>:$reason, UnitAttr:$again);
  let assemblyFormat = [{
    $value `over` $axis `along` $dim (`in` $blocks^ `blocks`)? (`again` $again^)? (`because` $reason^)? attr-dict `:` type($value) `->` type($result)
  }];
  let whole = "getResult()";
  let piece = "getValue()";
  let hasCanonicalizeMethod = 1;
}

def Par_ReduceScatterOp : Par_Exchange<"reduce_scatter", "ReduceScatter"> {
  let summary = "the sum over the ranks of an axis, of which each keeps its piece: partial -> sharded";
  let description = [{
    What is left of an all-reduce of which every rank needs a piece alone; its adjoint is `all_gather`.
    Created by canonicalization (`g` or `all_reduce`, then `narrow`) and as the gradient of `all_gather`;
    becomes an `rt` call in the lower phase.
  }];
  let assemblyFormat = [{
    $value `over` $axis `along` $dim (`in` $blocks^ `blocks`)? (`because` $reason^)? attr-dict `:` type($value) `->` type($result)
  }];
  let whole = "getValue()";
  let piece = "getResult()";
}

def Par_NarrowOp : Par_Move<"narrow"> {
  let summary = "this rank's piece of a value that all have whole: invariant -> sharded";
  let description = [{
    No communication; its adjoint is the `all_gather` to an invariant value.
    Created by `partition-seed-sequence` (before placements: then all types are whole) and as the gradient
    of such an `all_gather`; becomes an `rt` call in the lower phase.
  }];
  let assemblyFormat = [{
    $value `over` $axis `along` $dim (`in` $blocks^ `blocks`)? (`because` $reason^)? attr-dict `:` type($value) `->` type($result)
  }];
  let whole = "getValue()";
  let piece = "getResult()";
  let hasCanonicalizeMethod = 1;
}

//===----------------------------------------------------------------------------------------------===//
// Where a rank's piece lies
//===----------------------------------------------------------------------------------------------===//

def Par_FirstElementOp : Par_Op<"first_element", [Pure]> {
  let summary = "the row-major index, in the whole tensor, of the first element of this rank's piece";
  let description = [{
    `of` is the piece's type. The result has a dimension per dimension that is split, with one number per piece.
    Created where an op is localized that depends on global indices; becomes arithmetic on the rank's coordinates.

        %0 = par.first_element of tensor<4x16xf32, #par.place<[8 @dp, 16]>> : tensor<1xi64, #par.place<[2 @dp]>>
  }];
  let arguments = (ins TypeAttrOf<AnyRankedTensor>:$of);
  let results = (outs AnyRankedTensor:$index);
  let assemblyFormat = "`of` $of attr-dict `:` type($index)";
  let extraClassDeclaration = [{
    /// Per mesh axis that splits the piece, what one step along it adds to the index.
    ::llvm::SmallVector<::std::pair<::mlir::StringAttr, int64_t>> strides();
  }];
}

//===----------------------------------------------------------------------------------------------===//
// Collectives: mechanism ops
//===----------------------------------------------------------------------------------------------===//

class Par_Reduction<string mnemonic, list<Trait> traits = [], string more = "">
    : Par_Op<mnemonic, [Pure, CollectiveInterface] # traits> {
  let extraClassDeclaration = CollectiveOf<"AllReduce">.declaration # [{
    int64_t getWireBytes() { return ::partita::bytesOf((*this)->getOperandTypes()); }
  }] # more;
}

def Par_AllReduceOp : Par_Reduction<"all_reduce"> {
  let summary = "sum over the ranks of an axis: partial -> invariant";
  let description = [{
    A bucket of tensors reduced as one, in rank order. `reason` says what made it necessary.
    Created by differentiation (the conjugate of `f`) and `expand-conjugates` (`g`); joined into
    buckets by `bucket-all-reduces`; split into `all_reduce_start` and `wait` by `start-collectives`.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$values, StrAttr:$axis, OptionalAttr<StrAttr>:$reason);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $values `over` $axis (`because` $reason^)? attr-dict `:` type($values) `->` type($results)
  }];
  let hasVerifier = 1;
}

def Par_AllReduceMaxOp : Par_Reduction<"all_reduce_max"> {
  let summary = "the maximum over the ranks of an axis: max -> invariant";
  let description = [{
    Created by `expand-conjugates` from `par.max`; becomes an `rt` call in the lower phase.
  }];
  let arguments = (ins AnyRankedTensor:$value, StrAttr:$axis, OptionalAttr<StrAttr>:$reason);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$value `over` $axis (`because` $reason^)? attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
}

def Par_FirstIndexOp : Par_Op<"first_index", [Pure]> {
  let summary = "the global index at which this rank's piece of a dimension begins";
  let description = [{
    `size` is the whole dimension's. The result has one element per piece, so its type says which axes
    split the dimension, and each rank holds its own:

        %first = par.first_index of 50304 : tensor<1xi64, #par.place<[2 @tp]>>   // 0 or 25152

    Ops whose result depends on a global index take it as operand. Created by their `localize`;
    becomes a kernel argument in the lower phase.
  }];
  let arguments = (ins I64Attr:$size);
  let results = (outs 1DTensorOf<[I64]>:$result);
  let assemblyFormat = "`of` $size attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Par_AllReduceStartOp : Par_Reduction<"all_reduce_start", [AsyncStartInterface], [{
    ::mlir::Attribute getStream() { return ::partita::par::StreamAttr::get(getContext(), getAxisAttr(), ::partita_rt::rowOf(kKind).ahead); }
    bool worksInOperands() { return true; }
  }]> {
  let summary = "begins a sum over the ranks of an axis";
  let description = [{
    The operands may be neither written nor reused until the matching `wait`. `par.poll` says where
    a target without hardware for it works on the sum meanwhile.
    Created by `start-collectives`; becomes `rt` calls in the lower phase.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$values, StrAttr:$axis, OptionalAttr<StrAttr>:$reason);
  let results = (outs I64:$token);
  let assemblyFormat = [{
    $values `over` $axis (`because` $reason^)? attr-dict `:` type($values) `->` type($token)
  }];
}

def Par_WaitOp : Par_Op<"wait", [Pure, AsyncWaitInterface]> {
  let summary = "completes a collective; its results are the reduced values";
  let description = [{
    `values` are those that the matching start was given: they live until here, and the result of
    each may take its place.
  }];
  let arguments = (ins I64:$token, Variadic<AnyRankedTensor>:$values);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = "$token `,` $values attr-dict `:` type($token) `,` type($values) `->` type($results)";
  let hasVerifier = 1;
}

def Par_PollOp : Par_Op<"poll"> {
  let summary = "works on the collectives over an axis that are under way, without waiting for anyone";
  let description = [{
    The oldest first, up to about `bytes` of memory read or written. On CPUs a collective makes no
    progress by itself, and a thread of its own would take the core of another rank: what is not
    done in polls is done in `wait`. Changes no value; the sums stay in rank order. On GPUs the
    collectives have a stream: there the lowering drops the op.
    Created by `poll-collectives`; becomes an `rt` call in the lower phase.
  }];
  let arguments = (ins StrAttr:$axis, I64Attr:$bytes);
  let assemblyFormat = "`over` $axis `bytes` $bytes attr-dict";
}

#endif // PARTITA_PAR
