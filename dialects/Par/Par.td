//===- Par.td - meshes, placements, conjugates, collectives --------------------------------------===//
//
// Placements say what a rank holds of a value, per mesh axis; collectives move values between ranks. The
// dialect knows neither models nor NCCL. See README.md in this folder for the design.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_PAR
#define PARTITA_PAR

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
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
    /// `invariant` are the same there.
    static constexpr ::llvm::StringLiteral kNoCotangents = "par.no_cotangents";
    /// On a module whose sequences are dealt in order though ranks of a ring then have unequal work: why, as text for reports.
    static constexpr ::llvm::StringLiteral kInOrder = "par.in_order";
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
    The encoding of a tensor type. The tensor's shape is that of the rank's shard; the placement carries the
    full shape and, for each dimension, the axes that split it, outermost first.

        tensor<4x128xf32, #par.place<[8 @dp, 128]>>           sharded over dp along dimension 0
        tensor<8x48xf32, #par.place<[8, 3 x 32 @tp]>>         each of three blocks of 32 sharded over tp
        tensor<4x16xi64, #par.place<[4, 2 x 32 @cp mirrored]>> each of two blocks of 32 sharded over cp, the second one backwards
        tensor<8x128xf32, #par.place<[8, 128], partial [dp]>> the value is the sum over dp's ranks
        tensor<8xf32, #par.place<[8], max [tp]>>         the value is the max over tp's ranks
        tensor<96xf32, #par.place<[8, 48 @tp], flat [dp]>>    dp splits the elements of tp's shard, in their order

    | placement  | value                       | cotangent                 |
    |------------|-----------------------------|---------------------------|
    | invariant  | same on every rank          | same on every rank        |
    | replicated | same on every rank          | partial: each has one term of the sum |
    | sharded    | a shard                     | the same shard            |
    | flat       | a shard of the elements     | the same shard            |
    | partial    | the sum over ranks          | invariant                 |
    | max        | the max over ranks          | none: no gradient flows   |

    `splits` has a list of axes per dimension. `3 x 32 @tp` means that the axis splits each of three blocks; without a number there is
    one block. An axis that is not mentioned is invariant; a tensor without encoding is invariant on all axes.

    `2 x 32 @cp mirrored`: every second block is dealt backwards. Of 2 c chunks in order, rank r of c has chunks r and 2c-1-r, so a causal mask hides
    as much from it as from any other rank (zigzag: Grattafiori et al., arXiv 2407.21783, 3.3.2).

    `flat` axes, outermost first, split the elements that the other axes leave, in memory order, into equal shards: each axis the
    shards of the one before it. The last shards are padded with zeros. Such a tensor has one dimension, whatever the full tensor
    has; only elementwise ops take it
    (ZeRO's shards of parameters, gradients and states).
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
  let summary = "who requested the splits over an axis";
  let description = [{
    `kind` is its origin: `batch`, `context`, `ring`, `analysis`, `user`, `annotation`, `sequence`, `stages`. `words` is the request as text for reports.
    `parameters` lists the parameters that it splits together.

        #par.seed<"analysis" "" of ["up@1", "down@0"]>
        #par.seed<"user" "up=tp@1" of ["up@1", "down@0"]>

    A parameter's seeds are in its attribute `par.seeds`, a dictionary by axis, until `partition-materialize` makes them part of
    `#par.cause`.
  }];
  let parameters = (ins "::mlir::StringAttr":$kind, "::mlir::StringAttr":$words, "::mlir::ArrayAttr":$parameters);
  let assemblyFormat = "`<` $kind $words `of` $parameters `>`";
}

def Par_ExactStepsAttr : Par_Attr<"ExactSteps", "exact_steps"> {
  let summary = "the steps of training whose sums are exact";
  let description = [{
    partita_rt::ExactSteps. Ops print it as `exact until 20 doubling 4`.

        #par.exact_steps<until 10>
        #par.exact_steps<until 20 doubling 4>
  }];
  let parameters = (ins "int64_t":$until, DefaultValuedParameter<"int64_t", "0">:$doubling);
  let assemblyFormat = "`<` `until` $until (`doubling` $doubling^)? `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    ::partita_rt::ExactSteps getSteps() const { return {getUntil(), getDoubling()}; }
    static ExactStepsAttr of(::mlir::MLIRContext *context, ::partita_rt::ExactSteps steps) { return get(context, steps.until, steps.doubling); }
  }];
}

def Par_StreamAttr : Par_Attr<"Stream", "stream"> {
  let summary = "a mesh axis's queue of collectives that run beside the computation";
  let description = [{
    The stream of an AsyncStartInterface. `#par.stream<"tp">`; collectives that begin ahead of their use have one of their own,
    `#par.stream<"dp" ahead>`, so that they never queue behind a reduction. Lowering gives each stream a row of the program's
    communicators (#rt.communicator).
  }];
  let parameters = (ins "::mlir::StringAttr":$axis, "bool":$ahead);
  let hasCustomAssemblyFormat = 1;
}

def Par_Role : I32EnumAttr<"Role", "why an op was inserted", [
  I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Max", 1, "max">, I32EnumAttrCase<"Share", 2, "share">,
  I32EnumAttrCase<"Parameter", 3, "parameter">, I32EnumAttrCase<"Full", 4, "full">, I32EnumAttrCase<"Shard", 5, "shard">,
  I32EnumAttrCase<"Block", 6, "block">, I32EnumAttrCase<"Moved", 7, "moved">, I32EnumAttrCase<"Update", 8, "update">,
  I32EnumAttrCase<"Kept", 9, "kept">, I32EnumAttrCase<"Saved", 10, "saved">, I32EnumAttrCase<"Held", 11, "held">,
  I32EnumAttrCase<"Norm", 12, "norm">, I32EnumAttrCase<"Report", 13, "report">, I32EnumAttrCase<"Sent", 14, "sent">,
  I32EnumAttrCase<"Scale", 15, "scale">, I32EnumAttrCase<"Passed", 16, "passed">,
  I32EnumAttrCase<"Dealt", 17, "dealt">]> {
  let cppNamespace = "::partita::par";
  let genSpecializedAttr = 0;
}

def Par_CauseAttr : Par_Attr<"Cause", "cause"> {
  let summary = "why a conjugate or a move was inserted";
  let description = [{
    Names the letter of an op's rule that an axis splits, the op's node in the model, the seed of the split, and the op's layer.
    Every op that `partition-materialize` inserts has it in its array `par.causes`, and so has every op derived from that one: its
    backward half, a bucket, a start (dialects/Interfaces/Provenance.h). Read it with `par::causesOf`.

    | role      | meaning                                                                    |
    |-----------|----------------------------------------------------------------------------|
    | sum       | the letter is summed away: each rank has a partial sum                     |
    | max       | the same for a max                                                         |
    | share     | an operand lacks the letter: each rank has a partial sum of its cotangent  |
    | parameter | the same, for a value that depends on parameters alone                     |
    | full      | an operand is sharded, and the op splits another letter                    |
    | shard     | an operand is full, and the op needs its shard                             |
    | block     | the same, for a block of a parameter whose other blocks stay full          |
    | moved     | an operand comes from another pipeline stage, which sends each rank a shard; no letter |
    | update    | each rank updates the shard of the parameter whose states it keeps         |
    | kept      | each rank keeps a shard of the parameter                                   |
    | saved     | each rank keeps a shard of the input of a recomputed layer; no letter      |
    | held      | several pipeline stages hold the parameter; no letter, like the next two    |
    | norm      | a norm is over the gradients of all pipeline stages                        |
    | report    | every rank reports a value that one pipeline stage has                     |
    | sent      | as sum or share, and each rank sends its shard of the total to another pipeline stage |
    | scale     | 8-bit numbers are scaled by a max over all ranks; no letter                |
    | passed    | an op passes its operands from rank to rank, and works with each rank's in turn |
    | dealt     | an op works on a shard along another dimension than what is around it |

    `layer` is the number of the layer (partita/Analysis/Layers.h): -1 before the first one or without layers, -2 after the last
    one, -3 outside the loop over micro-batches. `layers` is the number of layers of the function.
  }];
  let parameters = (ins EnumParameter<Par_Role>:$role, "::mlir::StringAttr":$letter, "::mlir::StringAttr":$rule,
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

class Par_Conjugate<string mnemonic, list<Trait> traits = []> : Par_Op<mnemonic,
    traits # [Pure, TransparentInterface, DeclareOpInterfaceMethods<DifferentiableInterface>]> {
  let arguments = (ins AnyRankedTensor:$value, StrAttr:$axis);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$value `over` $axis attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
}

def Par_FOp : Par_Conjugate<"f", [Linear]> {
  let summary = "identity forward, all-reduce backward: invariant -> replicated";
  let hasCanonicalizeMethod = 1;
  let description = [{
    Megatron's `f` at the entry of a column-parallel block, and data parallelism's at every parameter: from here on the
    ranks use the same value for different work, so each rank computes a partial sum of its cotangent. Created by
    `partition-materialize`; removed by `expand-conjugates`, after differentiation.
  }];
}

def Par_GOp : Par_Conjugate<"g", [Linear]> {
  let summary = "all-reduce forward, identity backward: partial -> invariant";
  let description = [{
    Megatron's `g` at the exit of a row-parallel block; the mean loss under data parallelism.
    Created by `partition-materialize`; removed by `expand-conjugates`, after differentiation.
  }];
}

def Par_MaxOp : Par_Conjugate<"max"> {
  let summary = "all-reduce with max forward, no gradient: max -> invariant";
  let description = [{
    The max of a stable softmax over a split dimension. Mathematically the result does not depend on it, so no gradient
    flows back.
    Created by `partition-materialize`; removed by `expand-conjugates`, after differentiation.
  }];
}

//===----------------------------------------------------------------------------------------------===//
// Between shards and full values. Each op is the backward half of another one.
//===----------------------------------------------------------------------------------------------===//

def ReshardInterface : OpInterface<"ReshardInterface", [TransparentInterface]> {
  let cppNamespace = "::partita::par";
  let description = [{
    Converts between a full value and one rank's shard of it, along one dimension. Seeds insert it where a use needs another
    placement than the definition has; until `partition-materialize` both of its types are full.
  }];
  let methods = [
    InterfaceMethod<"The mesh axis.", "::mlir::StringAttr", "getAxisAttr">,
    InterfaceMethod<"The dimension that the axis splits.", "uint64_t", "getDim">,
    InterfaceMethod<"The number of equal blocks of the dimension that the axis splits one by one.", "uint64_t", "getBlocks">,
    InterfaceMethod<"Sets the number of blocks.", "void", "setBlocks", (ins "uint64_t":$blocks)>,
    InterfaceMethod<"These blocks as the shard's placement has them.", "::partita::par::Blocks", "getShardBlocks", (ins), [{}],
      [{ return ::partita::par::Blocks(static_cast<int64_t>($_op.getBlocks())); }]>,
    InterfaceMethod<"The kind of placement that the operand must have over the axis.", "::partita::par::Kind", "getOperandKind">,
  ];
  let extraSharedClassDeclaration = [{
    /// Is the operand the shard and the result the full value?
    bool gathers() { return $_op.getOperandKind() == ::partita::par::Kind::Sharded; }
    ::mlir::Value getShard() { return gathers() ? ::mlir::Value($_op->getOperand(0)) : ::mlir::Value($_op->getResult(0)); }
  }];
}

/// Of an op with axis, dim and blocks: where a shard lies in a full value.
class ShardOfFull<string full, string shard> {
  string declaration = [{
    /// The types of the full value and of one rank's shard.
    ::mlir::RankedTensorType getFullType() { return ::mlir::cast<::mlir::RankedTensorType>(}] # full # [{.getType()); }
    ::mlir::RankedTensorType getShardType() { return ::mlir::cast<::mlir::RankedTensorType>(}] # shard # [{.getType()); }
    /// Where the shard lies in the full value: each of `blocks` blocks has `count` elements per rank, in rank order.
    ::partita::par::Interleaving getInterleaving() {
      return ::partita::par::interleaving(*this, getShardType(), getAxisAttr(), getDim(), getBlocks());
    }
  }];
}

class Par_Move<string mnemonic, string operandKind, list<Trait> traits = []> : Par_Op<mnemonic,
    traits # [Pure, Linear, ReshardInterface, DeclareOpInterfaceMethods<DifferentiableInterface>]> {
  let arguments = (ins AnyRankedTensor:$value, StrAttr:$axis, I64Attr:$dim, DefaultValuedAttr<I64Attr, "1">:$blocks,
                       OptionalAttr<StrAttr>:$reason);
  let results = (outs AnyRankedTensor:$result);
  let hasVerifier = 1;
  string full = ?;
  string shard = ?;
  string declaration = "::partita::par::Kind getOperandKind() { return ::partita::par::Kind::" # operandKind # "; }"
                       # ShardOfFull<full, shard>.declaration;
  let extraClassDeclaration = declaration;
}

/// Moves this rank's shard alone and does not communicate; odd blocks may be dealt backwards.
class Par_OwnShard<string mnemonic, string operandKind> : Par_Move<mnemonic, operandKind> {
  let arguments = (ins AnyRankedTensor:$value, StrAttr:$axis, I64Attr:$dim, DefaultValuedAttr<I64Attr, "1">:$blocks,
                       OptionalAttr<StrAttr>:$reason, UnitAttr:$mirrored);
  let assemblyFormat = [{
    $value `over` $axis `along` $dim (`in` $blocks^ `blocks`)? (`mirrored` $mirrored^)? (`because` $reason^)? attr-dict `:` type($value) `->` type($result)
  }];
  let extraClassDeclaration = declaration # [{
    ::partita::par::Blocks getShardBlocks() {
      return ::partita::par::Blocks::equal(static_cast<int64_t>(getBlocks()), getMirrored());
    }
  }];
}

/// Communicates. The verifier checks that the full value has as many shards as there are ranks.
class Par_ShardCollective<string mnemonic, string kind, string operandKind, list<Trait> traits = [], string more = "">
    : Par_Move<mnemonic, operandKind, [CollectiveInterface] # traits> {
  let extraClassDeclaration = declaration # CollectiveOverAxis<kind>.declaration # more;
}

def Par_AllGatherOp : Par_ShardCollective<"all_gather", "AllGather", "Sharded",
    [GatherInterface, DeclareOpInterfaceMethods<StartableInterface>], [{
    bool gathersParameters() { return false; }
  }]> {
  let summary = "the shards of all ranks along a dimension: sharded -> replicated or invariant";
  let description = [{
    The axis splits `dim`, within each of `blocks` equal blocks of it. The result's placement decides the adjoint:
    `reduce_scatter` if the ranks use the result for different work (replicated), since each then has a partial sum of the
    cotangent; `narrow` if all do the same (invariant).

        %1 = par.all_gather %0 over "tp" along 1
           : tensor<4x8x32xf32, #par.place<[4, 16 @tp, 32]>> -> tensor<4x16x32xf32, #par.place<[4, 16, 32], replicated [tp]>>

    Created by `partition-seed-sequence` and `partition-seed-moves` (before placements, when all types are full), as the gradient of
    `reduce_scatter` and `narrow`, and by `gather-again` (`again`: for the backward pass, so that no full value is kept for it). Split
    into `all_gather_start` and `wait` by `start-collectives`; becomes an `rt` call in the lower phase.
  }];
  let arguments = (ins AnyRankedTensor:$value, StrAttr:$axis, I64Attr:$dim, DefaultValuedAttr<I64Attr, "1">:$blocks,
                       OptionalAttr<StrAttr>:$reason, UnitAttr:$again);
  let assemblyFormat = [{
    $value `over` $axis `along` $dim (`in` $blocks^ `blocks`)? (`again` $again^)? (`because` $reason^)? attr-dict `:` type($value) `->` type($result)
  }];
  let full = "getResult()";
  let shard = "getValue()";
  let hasCanonicalizeMethod = 1;
}

def Par_ReduceScatterOp : Par_ShardCollective<"reduce_scatter", "ReduceScatter", "Partial",
    [DeclareOpInterfaceMethods<StartableInterface>]> {
  let summary = "the sum over the ranks of an axis; each rank keeps its shard of it: partial -> sharded";
  let description = [{
    Replaces an all-reduce if every rank needs only its shard of the result; its adjoint is `all_gather`.
    Created by canonicalization (`g` or `all_reduce`, then `narrow`) and as the gradient of `all_gather`; split into
    `reduce_scatter_start` and `wait` by `start-collectives`; becomes an `rt` call in the lower phase.
  }];
  let assemblyFormat = [{
    $value `over` $axis `along` $dim (`in` $blocks^ `blocks`)? (`because` $reason^)? attr-dict `:` type($value) `->` type($result)
  }];
  let full = "getValue()";
  let shard = "getResult()";
}

def Par_NarrowOp : Par_OwnShard<"narrow", "Invariant"> {
  let summary = "this rank's shard of a value that all ranks have in full: invariant or replicated -> sharded";
  let description = [{
    It does not communicate. Its adjoint is the `all_gather` to an invariant value, or `widen` if the operand is replicated: a table of positions
    then has one sum of its gradient over the ranks, that of its `f`. `mirrored`: odd blocks are dealt backwards (#par.place). Created by `partition-seed-context`, `partition-seed-sequence`,
    `partition-seed-moves` and `partition-seed-tensor` (before placements, when all types are full), by `localize` of constants, and as the
    gradient of such an `all_gather`; becomes an `rt` call in the lower phase.
  }];
  let full = "getValue()";
  let shard = "getResult()";
  let hasCanonicalizeMethod = 1;
}

def Par_WidenOp : Par_OwnShard<"widen", "Sharded"> {
  let summary = "this rank's shard, with zeros in the places of all others: sharded -> partial";
  let description = [{
    It does not communicate. The adjoint of a `narrow` of a replicated value, as which differentiation creates it; its own is a `narrow`.
    Becomes an `rt` call in the lower phase.
  }];
  let full = "getResult()";
  let shard = "getValue()";
}

//===----------------------------------------------------------------------------------------------===//
// Collectives: mechanism ops
//===----------------------------------------------------------------------------------------------===//

class Par_Reduction<string mnemonic, list<Trait> traits = [], string more = "">
    : Par_Op<mnemonic, [Pure, CollectiveInterface] # traits> {
  let extraClassDeclaration = CollectiveOverAxis<"AllReduce">.declaration # more;
}

def Par_AllReduceOp : Par_Reduction<"all_reduce", [Linear, DeclareOpInterfaceMethods<StartableInterface>]> {
  let summary = "sum over the ranks of an axis: partial -> invariant";
  let description = [{
    Reduces a bucket of tensors as one, in rank order. `reason` is its name in reports. Created by
    differentiation (the conjugate of `f`) and `expand-conjugates` (`g`); joined into buckets by
    `bucket-all-reduces`; split into `all_reduce_start` and `wait` by `start-collectives`.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$values, StrAttr:$axis, OptionalAttr<StrAttr>:$reason);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $values `over` $axis (`because` $reason^)? attr-dict `:` type($values) `->` type($results)
  }];
  let hasVerifier = 1;
}

def Par_AllReduceMaxOp : Par_Reduction<"all_reduce_max"> {
  let summary = "the max over the ranks of an axis: max -> invariant";
  let description = [{
    Created by `expand-conjugates` from `par.max`; becomes an `rt` call in the lower phase.
  }];
  let arguments = (ins AnyRankedTensor:$value, StrAttr:$axis, OptionalAttr<StrAttr>:$reason);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$value `over` $axis (`because` $reason^)? attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
}

def Par_AllReduceStartOp : Par_Reduction<"all_reduce_start", [AsyncStartInterface], [{
    ::mlir::Attribute getStream() { return ::partita::par::StreamAttr::get(getContext(), getAxisAttr(), ::partita_rt::rowOf(kKind).ahead); }
    bool worksInOperands() { return true; }
  }]> {
  let summary = "begins a sum over the ranks of an axis";
  let description = [{
    The operands must be neither written nor reused until the matching `wait`. On targets whose collectives make no
    progress by themselves, `par.poll` works on the sum in between.
    Created by `start-collectives`; becomes `rt` calls in the lower phase.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$values, StrAttr:$axis, OptionalAttr<StrAttr>:$reason);
  let results = (outs I64:$token);
  let assemblyFormat = [{
    $values `over` $axis (`because` $reason^)? attr-dict `:` type($values) `->` type($token)
  }];
}

class Par_ShardStart<string mnemonic, string kind, string full, string shard>
    : Par_Op<mnemonic, [Pure, CollectiveInterface, AsyncStartInterface]> {
  let arguments = (ins AnyRankedTensor:$value, StrAttr:$axis, I64Attr:$dim, DefaultValuedAttr<I64Attr, "1">:$blocks,
                       OptionalAttr<StrAttr>:$reason);
  let results = (outs I64:$token, AnyRankedTensor:$result);
  let assemblyFormat = [{
    $value `over` $axis `along` $dim (`in` $blocks^ `blocks`)? (`because` $reason^)? attr-dict `:` type($value) `->` type($token) `,` type($result)
  }];
  let extraClassDeclaration = ShardOfFull<full, shard>.declaration # CollectiveOverAxis<kind>.declaration # [{
    ::mlir::Attribute getStream() { return ::partita::par::StreamAttr::get(getContext(), getAxisAttr(), ::partita_rt::rowOf(kKind).ahead); }
  }];
  let hasVerifier = 1;
}

def Par_AllGatherStartOp : Par_ShardStart<"all_gather_start", "AllGather", "getResult()", "getValue()"> {
  let summary = "begins an all-gather; its result may be read after its `wait`";
  let description = [{
    The result is complete at the matching `wait`, whose result it becomes; the shard must be neither written nor reused until
    then. Created by `start-collectives`; becomes `rt` calls in the lower phase.
  }];
}

def Par_ReduceScatterStartOp : Par_ShardStart<"reduce_scatter_start", "ReduceScatter", "getValue()", "getResult()"> {
  let summary = "begins a reduce-scatter; its result may be read after its `wait`";
  let description = [{
    Like `all_gather_start`; the result is this rank's shard of the sum.
  }];
}

def Par_WaitOp : Par_Op<"wait", [Pure, AsyncWaitInterface]> {
  let summary = "completes a collective; its results are the values that the collective fills";
  let description = [{
    Waits for any start of a collective, of this dialect or another. `values` are the values that the start fills: its operands if it
    is in-place, else its results. They live until the wait, and each result may be in-place.
  }];
  let arguments = (ins I64:$token, Variadic<AnyRankedTensor>:$values);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = "$token `,` $values attr-dict `:` type($token) `,` type($values) `->` type($results)";
  let hasVerifier = 1;
}

def Par_PollOp : Par_Op<"poll"> {
  let summary = "works on the pending collectives over an axis without waiting for other ranks";
  let description = [{
    Works on the oldest first, up to about `bytes` of memory read or written. On CPUs a collective makes no progress by
    itself, and a thread for it would take the core of another rank; `wait` finishes what polls leave. A poll changes
    no value, and sums stay in rank order. On GPUs collectives have a stream, so the lowering drops the op. Created by
    `poll-collectives`; becomes an `rt` call in the lower phase.
  }];
  let arguments = (ins StrAttr:$axis, I64Attr:$bytes);
  let assemblyFormat = "`over` $axis `bytes` $bytes attr-dict";
}

include "dialects/Par/ParChunks.td"
include "dialects/Par/ParExchanges.td"
include "dialects/Par/ParIndices.td"

#endif // PARTITA_PAR
