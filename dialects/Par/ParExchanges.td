//===- ParExchanges.td - from rank to rank --------------------------------------------------------===//
//
// Shards that ranks exchange, where no rank gets a full value. Included by Par.td.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_PAR_EXCHANGES
#define PARTITA_PAR_EXCHANGES

def Par_AllToAllOp : Par_Op<"all_to_all", [Pure, Linear, CollectiveInterface, DeclareOpInterfaceMethods<DifferentiableInterface>]> {
  let summary = "a shard along one dimension for a shard along another: sharded -> sharded";
  let description = [{
    Every rank sends every other one a block of its shard. Its adjoint is the inverse. Created by `partition-seed-context` around an attention
    that is split by heads where everything else is split along the sequence (Jacobs et al., arXiv 2309.14509); becomes an `rt` call,
    and a copy that packs or unpacks blocks, in the lower phase. Heads that tp splits, too, are as many `blocks`, each of which the axis splits;
    so are `runs` of the sequence, the outer dimension of the two, where a ring around the exchange deals out several chunks of it.

        %1 = par.all_to_all %0 over "cp" from 1 to 2
           : tensor<2x8x4x64xf32, #par.place<[2, 16 @cp, 4, 64]>> -> tensor<2x16x2x64xf32, #par.place<[2, 16, 4 @cp, 64]>>
  }];
  let arguments = (ins AnyRankedTensor:$value, StrAttr:$axis, I64Attr:$from, I64Attr:$to, DefaultValuedAttr<I64Attr, "1">:$blocks,
                       OptionalAttr<StrAttr>:$reason, DefaultValuedAttr<I64Attr, "1">:$runs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $value `over` $axis `from` $from `to` $to (`in` $blocks^ `blocks`)? (`of` $runs^ `runs`)? (`because` $reason^)? attr-dict `:` type($value) `->` type($result)
  }];
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
  let extraClassDeclaration = CollectiveOverAxis<"AllToAll">.declaration # [{
    /// The blocks of a dimension that it splits: runs of the sequence, which is the outer one.
    int64_t blocksAlong(uint64_t dim) { return int64_t(dim == std::max(getFrom(), getTo()) ? getBlocks() : getRuns()); }
  }];
}

class Par_ShiftLike<string mnemonic, list<Trait> traits> : Par_Op<mnemonic, [Pure, CollectiveInterface] # traits> {
  let arguments = (ins Variadic<AnyRankedTensor>:$values, StrAttr:$axis, UnitAttr:$back, OptionalAttr<StrAttr>:$reason);
  let hasVerifier = 1;
}

def Par_ShiftOp : Par_ShiftLike<"shift", [Linear, DeclareOpInterfaceMethods<DifferentiableInterface>,
                                          DeclareOpInterfaceMethods<StartableInterface>]> {
  let summary = "the shards of the rank before this one along the axis, of the rank behind with `back`: sharded -> sharded";
  let description = [{
    The ranks are a ring. In the full program it rotates each tensor by one shard, so it is not transparent; its adjoint is the shift the other
    way. Created by `expand-ring` for keys and values, and for their cotangents; split into `shift_start` and `wait` by
    `start-collectives`; becomes an `rt` call in the lower phase.

        %k1, %v1 = par.shift %k, %v over "cp" : tensor<2x4x8x64xf32, #par.place<[2, 16 @cp, 8, 64]>>, ... -> ...
  }];
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = "$values `over` $axis (`back` $back^)? (`because` $reason^)? attr-dict `:` type($values) `->` type($results)";
  let extraClassDeclaration = CollectiveOverAxis<"Shift">.declaration;
}

def Par_ShiftStartOp : Par_ShiftLike<"shift_start", [AsyncStartInterface]> {
  let summary = "begins a shift; its results may be read after its `wait`";
  let description = "Like `all_gather_start`; created by `start-collectives`.";
  let results = (outs I64:$token, Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $values `over` $axis (`back` $back^)? (`because` $reason^)? attr-dict `:` type($values) `->` type($token) `,` type($results)
  }];
  let extraClassDeclaration = CollectiveOverAxis<"Shift">.declaration # [{
    ::mlir::Attribute getStream() { return ::partita::par::StreamAttr::get(getContext(), getAxisAttr(), ::partita_rt::rowOf(kKind).ahead); }
  }];
}

#endif // PARTITA_PAR_EXCHANGES
