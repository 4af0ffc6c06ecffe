//===- Zero.td - shards of parameters, gradients and states ---------------------------------------===//
//
// Flat shards of the model's state, and the bucketed collectives that gather and reduce them. See README.md in
// this folder for the design.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_ZERO
#define PARTITA_ZERO

include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialects/Interfaces/Interfaces.td"

def Zero_Dialect : Dialect {
  let name = "zero";
  let cppNamespace = "::partita::zero";
  let summary = "flat shards of the model's state: shard, gather, reduce-scatter over buckets";
  let dependentDialects = ["::partita::par::ParDialect"];
}

class Zero_Op<string mnemonic, list<Trait> traits = []> : Op<Zero_Dialect, mnemonic, traits>;

def Zero_ShardOp : Zero_Op<"shard", [Pure, Linear, DeclareOpInterfaceMethods<DifferentiableInterface>]> {
  let summary = "this rank's flat shard of a value that all ranks of an axis have: invariant -> flat";
  let description = [{
    Splits the elements that a rank holds, in memory order, into as many equal shards as the axis has ranks, and pads
    the last ones with zeros. It does not communicate; its adjoint is the `gather` to an invariant value.

        %shard = zero.shard %w over "dp" : tensor<3x5xf32> -> tensor<8xf32, #par.place<[3, 5], flat [dp]>>

    Created by `zero-shard-states`, and by `recompute` for saved inputs of layers; becomes an `rt` call in the
    lower phase.
  }];
  let arguments = (ins AnyRankedTensor:$value, StrAttr:$axis);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$value `over` $axis attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

/// Moves the shards of all ranks, padding included.
class Zero_Collective<string mnemonic, string kind, list<Trait> traits = [], string more = "">
    : Zero_Op<mnemonic, traits # [Pure, CollectiveInterface]> {
  let extraClassDeclaration = CollectiveOverAxis<kind>.declaration # more;
}

/// Chunks are bytes; what they hold is 4-bit numbers and scales.
defvar kSentInt4 = [{std::string getSentType() { return "int4"; } }];

def Zero_GatherOp : Zero_Collective<"gather", "AllGather", [Linear, GatherInterface,
    DeclareOpInterfaceMethods<DifferentiableInterface>, DeclareOpInterfaceMethods<StartableInterface>],
    "bool gathersParameters() { return true; }"> {
  let summary = "full tensors from the flat shards of all ranks: flat -> replicated or invariant";
  let description = [{
    Gathers a bucket of tensors. The adjoint is `reduce_scatter` if the result is replicated (a parameter, used on
    different samples), and `shard` if it is invariant.

        %w = zero.gather %shard over "dp" because "updated parameter"
           : tensor<8xf32, #par.place<[3, 5], flat [dp]>> -> tensor<3x5xf32>

    With `int8_block`, the full tensors are rounded in blocks of so many elements, as by `quantize_blocks` and
    `dequantize_blocks`: `zero-quantize-gathers` moves the first before the gather, where shards hold whole blocks.

    Created by `zero-shard-states`, `zero-shard-parameters` and `recompute`; joined into buckets by
    `bucket-gathers`; split into `gather_start` and `par.wait` by `start-collectives`.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$shards, StrAttr:$axis, OptionalAttr<StrAttr>:$reason, UnitAttr:$again,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$int8_block);
  let results = (outs Variadic<AnyRankedTensor>:$full);
  let assemblyFormat = [{
    $shards `over` $axis (`again` $again^)? (`in` `int8` `blocks` `of` $int8_block^)? (`because` $reason^)? attr-dict
    `:` type($shards) `->` type($full)
  }];
  let builders = [OpBuilder<(ins "::mlir::TypeRange":$full, "::mlir::ValueRange":$shards, "::mlir::StringAttr":$axis,
                                 "::mlir::StringAttr":$reason, "::mlir::UnitAttr":$again), [{
    build($_builder, $_state, full, shards, axis, reason, again, ::mlir::IntegerAttr());
  }]>];
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def Zero_ReduceScatterOp : Zero_Collective<"reduce_scatter", "ReduceScatter",
    [Linear, DeclareOpInterfaceMethods<StartableInterface>, DeclareOpInterfaceMethods<LossyInterface>]> {
  let summary = "sums over the ranks of an axis; each rank keeps its flat shard of the sums: partial -> flat";
  let description = [{
    Reduces a bucket in rank order: each rank gets exactly the elements that it owns of each tensor. Created by
    canonicalization (`par.all_reduce`, then `shard`) and as the gradient of `gather`; joined into buckets by
    `bucket-all-reduces`; split into `reduce_scatter_start` and `par.wait` by `start-collectives`.

        %g = zero.reduce_scatter %dw over "dp" because "gradient"
           : tensor<3x5xf32, #par.place<[3, 5], partial [dp]>> -> tensor<8xf32, #par.place<[3, 5], flat [dp]>>

    With `int4_block`, what is summed are the values as `quantize_chunks` and `sum_chunks` round them, in blocks of so many elements of each
    shard: `zero-quantize-gradients` sets it, and `zero-quantize-scatters` writes these two and the exchange between them.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$values, StrAttr:$axis, OptionalAttr<StrAttr>:$reason,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$int4_block);
  let results = (outs Variadic<AnyRankedTensor>:$shards);
  let assemblyFormat = [{
    $values `over` $axis (`in` `int4` `blocks` `of` $int4_block^)? (`because` $reason^)? attr-dict `:` type($values) `->` type($shards)
  }];
  let builders = [OpBuilder<(ins "::mlir::TypeRange":$shards, "::mlir::ValueRange":$values, "::mlir::StringAttr":$axis,
                                 "::mlir::StringAttr":$reason), [{
    build($_builder, $_state, shards, values, axis, reason, ::mlir::IntegerAttr());
  }]>];
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

//===----------------------------------------------------------------------------------------------===//
// Numbers in 8 bits
//
// Blockwise quantization of what ranks send (ZeRO++, Wang et al., arXiv 2306.10209; Dettmers et al., arXiv 2110.02861).
//===----------------------------------------------------------------------------------------------===//

class Zero_Blockwise<string mnemonic, list<Trait> traits = []> : Zero_Op<mnemonic, !listconcat([Pure], traits)> {
  let hasVerifier = 1;
}
def Zero_Int8 : RankedTensorOf<[I8]>;

def Zero_QuantizeBlocksOp : Zero_Blockwise<"quantize_blocks"> {
  let summary = "x in 8 bits, and a scale per block";
  let description = [{
    The scale of a block is the max of |x| in it, divided by 127; a number is x / scale, rounded to nearest even. Blocks are of `block`
    consecutive elements of the last dimension; x may be a flat shard that holds whole ones. A block whose max is below 127 times the
    smallest normal float is zero. A NaN or an infinity makes its block's scale NaN, so that the whole block becomes NaN.

        %q, %s = zero.quantize_blocks %x by 4
            : tensor<16xf32, #par.place<[4, 8], flat [dp]>>
            -> tensor<16xi8, #par.place<[4, 8], flat [dp]>>, tensor<4xf32, #par.place<[4, 2], flat [dp]>>

    Created by `zero-quantize-gathers`; becomes a kernel call.
  }];
  let arguments = (ins RankedTensorOf<[AnyFloat]>:$x, ConfinedAttr<I64Attr, [IntPositive]>:$block);
  let results = (outs Zero_Int8:$values, RankedTensorOf<[F32]>:$scales);
  let assemblyFormat = "$x `by` $block attr-dict `:` type($x) `->` type($values) `,` type($scales)";
}
def Zero_DequantizeBlocksOp : Zero_Blockwise<"dequantize_blocks"> {
  let summary = "the numbers that quantize_blocks has stored: values times their blocks' scales";
  let description = [{
        %x = zero.dequantize_blocks %q, %s by 4 : tensor<4x8xi8>, tensor<4x2xf32> -> tensor<4x8xbf16>

    Created by `zero-quantize-gathers`; becomes a kernel call.
  }];
  let arguments = (ins Zero_Int8:$values, RankedTensorOf<[F32]>:$scales, ConfinedAttr<I64Attr, [IntPositive]>:$block);
  let results = (outs RankedTensorOf<[AnyFloat]>:$x);
  let assemblyFormat = "$values `,` $scales `by` $block attr-dict `:` type($values) `,` type($scales) `->` type($x)";
}
def Zero_RoundBlocksOp : Zero_Blockwise<"round_blocks"> {
  let summary = "x as quantize_blocks and dequantize_blocks leave it, where nothing is sent in 8 bits";
  let description = [{
        %y = zero.round_blocks %x by 4 : tensor<4x8xf32> -> tensor<4x8xf32>

    Created by `zero-quantize-gathers`; becomes a kernel call.
  }];
  let arguments = (ins RankedTensorOf<[AnyFloat]>:$x, ConfinedAttr<I64Attr, [IntPositive]>:$block);
  let results = (outs RankedTensorOf<[AnyFloat]>:$result);
  let assemblyFormat = "$x `by` $block attr-dict `:` type($x) `->` type($result)";
}

//===----------------------------------------------------------------------------------------------===//
// Sums of numbers in 4 bits
//
// A ring that reduces would round a sum once per rank. So each rank rounds what it has, once, and sends each other one its chunk, which that
// one sums (ZeRO++'s qgZ).
//===----------------------------------------------------------------------------------------------===//

def Zero_QuantizeChunksOp : Zero_Blockwise<"quantize_chunks"> {
  let summary = "what a rank sends of its values to each rank of an axis, in 4 bits with a scale per block: partial -> split by senders";
  let description = [{
    Each value's elements are cut as `reduce_scatter` cuts them: into a chunk for each rank, the last ones padded with zeros. Blocks are of `block`
    consecutive elements of a chunk, a multiple of 8, and the last one of a chunk may be shorter: no block has elements of two chunks. The scale of a block is the max of |x| in it,
    divided by 7; a number is x times 7 / max, rounded to nearest even, in two's complement. A block whose max is below 7 times the smallest normal
    float is zero. A NaN or an infinity makes its block's scale NaN, so that the block becomes NaN in the sum.

    The result's last three dimensions are receivers, senders, of which a rank is one, and bytes: for each value, its chunk's scales, as
    float32, and its numbers, the first one lowest, in words of eight (partita_rt/int4_chunks.h). Other axes, of whose ranks each has another
    value, split dimensions before these.

        %chunks = zero.quantize_chunks %x over "dp" by 8
            : tensor<4x8xf32, #par.place<[4, 8], partial [dp]>> -> tensor<2x1x16xi8, #par.place<[2, 2 @dp, 16]>>

    Created by `zero-quantize-scatters`; becomes a kernel call per value.
  }];
  let arguments = (ins Variadic<RankedTensorOf<[AnyFloat]>>:$values, StrAttr:$axis, ConfinedAttr<I64Attr, [IntPositive]>:$block);
  let results = (outs Zero_Int8:$chunks);
  let assemblyFormat = "$values `over` $axis `by` $block attr-dict `:` type($values) `->` type($chunks)";
}

def Zero_ExchangeChunksOp : Zero_Collective<"exchange_chunks", "AllToAll", [DeclareOpInterfaceMethods<StartableInterface>], kSentInt4> {
  let summary = "each rank's chunk to that rank: split by senders -> split by receivers";
  let description = [{
        %received = zero.exchange_chunks %chunks over "dp" because "gradient"
            : tensor<2x1x16xi8, #par.place<[2, 2 @dp, 16]>> -> tensor<1x2x16xi8, #par.place<[2 @dp, 2, 16]>>

    Created by `zero-quantize-scatters`; split into `exchange_chunks_start` and `par.wait` by `start-collectives`.
  }];
  let arguments = (ins Zero_Int8:$chunks, StrAttr:$axis, OptionalAttr<StrAttr>:$reason);
  let results = (outs Zero_Int8:$received);
  let assemblyFormat = "$chunks `over` $axis (`because` $reason^)? attr-dict `:` type($chunks) `->` type($received)";
  let hasVerifier = 1;
}

def Zero_SumChunksOp : Zero_Blockwise<"sum_chunks", [DeclareOpInterfaceMethods<LossyInterface>]> {
  let summary = "this rank's flat shards of the sums of what all ranks have sent: split by receivers -> flat";
  let description = [{
    Adds numbers times their blocks' scales in the order of the ranks, in float32, from 0 on, and rounds the sum to the type of the shard.

        %g = zero.sum_chunks %received over "dp" by 8
            : tensor<1x2x16xi8, #par.place<[2 @dp, 2, 16]>> -> tensor<16xf32, #par.place<[4, 8], flat [dp]>>

    Created by `zero-quantize-scatters`; becomes a kernel call per shard.
  }];
  let arguments = (ins Zero_Int8:$received, StrAttr:$axis, ConfinedAttr<I64Attr, [IntPositive]>:$block);
  let results = (outs Variadic<RankedTensorOf<[AnyFloat]>>:$shards);
  let assemblyFormat = "$received `over` $axis `by` $block attr-dict `:` type($received) `->` type($shards)";
  let extraClassDeclaration = [{
    /// The value of which a result is a shard of the sum, found through the exchange, or its start and wait; null if another op wrote what is received.
    ::mlir::Value getSummed(unsigned result);
  }];
}

//===----------------------------------------------------------------------------------------------===//
// Asynchronous starts
//===----------------------------------------------------------------------------------------------===//

class Zero_Start<string mnemonic, string kind, string more = "">
    : Zero_Collective<mnemonic, kind, [AsyncStartInterface], [{
    ::mlir::Attribute getStream() { return ::partita::par::StreamAttr::get(getContext(), getAxisAttr(), ::partita_rt::rowOf(kKind).ahead); }
  }] # more> {
  let arguments = (ins Variadic<AnyRankedTensor>:$values, StrAttr:$axis, OptionalAttr<StrAttr>:$reason);
  let results = (outs I64:$token, Variadic<AnyRankedTensor>:$buffers);
  let assemblyFormat = [{
    $values `over` $axis (`because` $reason^)? attr-dict `:` type($values) `->` type($token) `,` type($buffers)
  }];
  let hasVerifier = 1;
}

def Zero_GatherStartOp : Zero_Start<"gather_start", "AllGather"> {
  let summary = "begins a gather; its results may be read after its `par.wait`";
  let description = [{
    `buffers` are the full tensors. They are complete at the matching `par.wait`, whose results they become; the shards must
    be neither written nor reused until then. Created by `start-collectives`; becomes `rt` calls in the lower phase.
  }];
}

def Zero_ReduceScatterStartOp : Zero_Start<"reduce_scatter_start", "ReduceScatter"> {
  let summary = "begins a reduce-scatter; its results may be read after its `par.wait`";
  let description = [{
    Like `gather_start`; `buffers` are the shards of the sums.
  }];
}

def Zero_ExchangeChunksStartOp : Zero_Start<"exchange_chunks_start", "AllToAll", kSentInt4> {
  let summary = "begins an exchange; its result may be read after its `par.wait`";
  let description = [{
    Like `gather_start`; `buffers` is what all ranks have sent to this one.
  }];
}

#endif // PARTITA_ZERO
