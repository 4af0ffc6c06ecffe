//===- Zero.td - pieces of parameters, gradients and states ---------------------------------------===//
//
// Who keeps which elements of the model's state, and what moves for it: flat pieces, in buckets.
// README.md in this folder says why it is as it is.
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
  let summary = "flat pieces of the model's state: shard, gather, reduce-scatter over buckets";
  let dependentDialects = ["::partita::par::ParDialect"];
}

class Zero_Op<string mnemonic, list<Trait> traits = []> : Op<Zero_Dialect, mnemonic, traits>;

def Zero_ShardOp : Zero_Op<"shard", [Pure, DeclareOpInterfaceMethods<DifferentiableInterface>]> {
  let summary = "this rank's flat piece of a value that all ranks of an axis have: invariant -> flat";
  let description = [{
    The elements of what a rank holds, in memory's order, are cut into as many equal pieces as the axis has ranks;
    what the last ones lack is padded with zeros. No communication; its adjoint is the `gather` to an invariant value.

        %piece = zero.shard %w over "dp" : tensor<3x5xf32> -> tensor<8xf32, #par.place<[3, 5], flat [dp]>>

    Created by `zero-shard-states`; becomes an `rt` call in the lower phase.
  }];
  let arguments = (ins AnyRankedTensor:$value, StrAttr:$axis);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$value `over` $axis attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

/// Of all ranks' pieces, padding included.
class Zero_Collective<string mnemonic, string kind, string pieces, list<Trait> traits = [], string more = "">
    : Zero_Op<mnemonic, traits # [Pure, CollectiveInterface]> {
  let extraClassDeclaration = CollectiveOf<kind>.declaration # [{
    int64_t getWireBytes() {
      return ::partita_rt::wireBytes(kKind, ::partita::bytesOf(}] # pieces # [{().getTypes()),
                                     ::partita::par::MeshAttr::of(*this).sizeOf(getAxis()));
    }
  }] # more;
}

def Zero_GatherOp : Zero_Collective<"gather", "AllGather", "getPieces", [DeclareOpInterfaceMethods<DifferentiableInterface>]> {
  let summary = "wholes out of all ranks' flat pieces: flat -> replicated or invariant";
  let description = [{
    A bucket. The adjoint of a gather to a replicated value (a parameter before work on different samples) is
    `reduce_scatter`, to an invariant one `shard`.

        %w = zero.gather %piece over "dp" because "updated parameter"
           : tensor<8xf32, #par.place<[3, 5], flat [dp]>> -> tensor<3x5xf32>

    Created by `zero-shard-states` and `zero-shard-parameters`; joined into buckets by `bucket-gathers`; split into
    `gather_start` and `wait` by `start-collectives`.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$pieces, StrAttr:$axis, OptionalAttr<StrAttr>:$reason, UnitAttr:$again);
  let results = (outs Variadic<AnyRankedTensor>:$wholes);
  let assemblyFormat = [{
    $pieces `over` $axis (`again` $again^)? (`because` $reason^)? attr-dict `:` type($pieces) `->` type($wholes)
  }];
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def Zero_ReduceScatterOp : Zero_Collective<"reduce_scatter", "ReduceScatter", "getPieces"> {
  let summary = "sums over the ranks of an axis, of which each rank keeps its flat piece: partial -> flat";
  let description = [{
    A bucket, reduced in rank order: each rank gets of every tensor the very elements that it owns, and nothing else.
    Created by canonicalization (`par.all_reduce`, then `shard`) and as the gradient of `gather`; joined into buckets by
    `bucket-all-reduces`; split into `reduce_scatter_start` and `wait` by `start-collectives`.

        %g = zero.reduce_scatter %dw over "dp" because "gradient"
           : tensor<3x5xf32, #par.place<[3, 5], partial [dp]>> -> tensor<8xf32, #par.place<[3, 5], flat [dp]>>
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$values, StrAttr:$axis, OptionalAttr<StrAttr>:$reason);
  let results = (outs Variadic<AnyRankedTensor>:$pieces);
  let assemblyFormat = "$values `over` $axis (`because` $reason^)? attr-dict `:` type($values) `->` type($pieces)";
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

//===----------------------------------------------------------------------------------------------===//
// Under way
//===----------------------------------------------------------------------------------------------===//

class Zero_Start<string mnemonic, string kind, string pieces>
    : Zero_Collective<mnemonic, kind, pieces, [AsyncStartInterface], [{
    ::mlir::Attribute getStream() { return ::partita::par::StreamAttr::get(getContext(), getAxisAttr(), ::partita_rt::rowOf(kKind).ahead); }
  }]> {
  let arguments = (ins Variadic<AnyRankedTensor>:$values, StrAttr:$axis, OptionalAttr<StrAttr>:$reason);
  let results = (outs I64:$token, Variadic<AnyRankedTensor>:$buffers);
  let assemblyFormat = [{
    $values `over` $axis (`because` $reason^)? attr-dict `:` type($values) `->` type($token) `,` type($buffers)
  }];
  let hasVerifier = 1;
}

def Zero_GatherStartOp : Zero_Start<"gather_start", "AllGather", "getValues"> {
  let summary = "begins a gather; what it fills may be looked at after its `wait`";
  let description = [{
    `buffers` are the wholes, filled until the matching `wait`, whose results they become; the pieces may be
    neither written nor reused until then. Created by `start-collectives`; becomes `rt` calls in the lower phase.
  }];
}

def Zero_ReduceScatterStartOp : Zero_Start<"reduce_scatter_start", "ReduceScatter", "getBuffers"> {
  let summary = "begins a reduce-scatter; what it fills may be looked at after its `wait`";
  let description = [{
    As `gather_start`: `buffers` are the pieces of the sums.
  }];
}

def Zero_WaitOp : Zero_Op<"wait", [Pure, AsyncWaitInterface]> {
  let summary = "completes a gather or a reduce-scatter; its results are what the buffers hold now";
  let description = "`buffers` are all that the matching start fills; each result stands where its buffer does.";
  let arguments = (ins I64:$token, Variadic<AnyRankedTensor>:$buffers);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = "$token `,` $buffers attr-dict `:` type($token) `,` type($buffers) `->` type($results)";
  let hasVerifier = 1;
}

#endif // PARTITA_ZERO
