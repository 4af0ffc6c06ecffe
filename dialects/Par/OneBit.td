//===- OneBit.td - sums that send a bit per element -----------------------------------------------===//
//
// Ops of the dialect with a header of their own, because few passes know them (OneBit.h).
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_PAR_ONE_BIT
#define PARTITA_PAR_ONE_BIT

include "dialects/Par/ExactSteps.td"
include "dialects/Par/Par.td"

def Par_OneBitAllReduceOp : Par_Op<"one_bit_all_reduce", [Pure, CollectiveInterface, DeclareOpInterfaceMethods<LossyInterface>]> {
  let summary = "sum over the ranks of an axis, after the first steps with one bit per element: partial -> invariant";
  let description = [{
    The compressed sum of 1-bit Adam (Tang et al., arXiv 2102.02888), 1-bit LAMB (Li et al., arXiv 2104.06069) and 0/1 Adam (Lu et al., arXiv 2202.06009), with what its compression has left out so far. Operands: n values, the
    errors of this rank as their worker, and its errors as a server, of the chunk of every value that it sums up; then `t`, the number of
    the step. Results: the sums, and the new errors. In exact steps it is `par.all_reduce`, and errors stay: while t <= `until`; with `doubling` k, in k steps of each interval
    of 1, 2, 4, ... (partita_rt/exact_steps.h) until then.

    Errors are states of a step. A worker's has the shape of the value, with a first dimension that the axis splits: of N ranks each has a
    row. A server's is a flat shard. So types, checkpoints and the interpreter know what each rank holds. The rows' sum is what has not been sent so far;
    another number of ranks takes equal shares of it.

    x: a rank's value and its worker's error; s(x) = |x| / sqrt(n) of n elements; sign(0) = 1:

        worker' = x - s(x) sign(x);  y = sum over ranks of s(x) sign(x), plus the server's error
        server' = y - s(y) sign(y);  result = s(y) sign(y), by chunk

    A bit has no zero, so a shard's padding, which stays zero, has no bit: s(x) is of elements that are no padding (0 if there are none), and padding's results and errors
    are 0. Chunks are of shards with padding. It must be the end of a shard: the padded dimension is the outermost one of which a shard has more than one index.

    If a rank's scale is not finite, all results are NaN on all ranks, and all errors stay. If a server's sum y is beyond float32, so is its scale: its chunk of
    that value is infinite on all ranks, and its error stays. No update skips such a step; the next loss is NaN, which ends the run. One rank alone compresses nothing.

        %sum, %worker1, %server1 = par.one_bit_all_reduce %x, %worker, %server at %t : tensor<f32> over "dp" exact until 10
           : (tensor<5xf32, #par.place<[5], partial [dp]>>, tensor<1x5xf32, #par.place<[2 @dp, 5]>>, tensor<3xf32, #par.place<[5], flat [dp]>>)
           -> (tensor<5xf32>, tensor<1x5xf32, #par.place<[2 @dp, 5]>>, tensor<3xf32, #par.place<[5], flat [dp]>>)
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$operands_, AnyRankedTensor:$t, StrAttr:$axis, Par_ExactSteps:$exact,
                       OptionalAttr<StrAttr>:$reason);
  let results = (outs Variadic<AnyRankedTensor>:$results_);
  let assemblyFormat = [{
    $operands_ `at` $t `:` type($t) `over` $axis `exact` custom<ExactSteps>($exact) (`because` $reason^)? attr-dict `:` functional-type($operands_, $results_)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The number of values that are summed.
    size_t getCount() { return getOperands_().size() / 3; }
    ::mlir::OperandRange getValues() { return getOperands_().take_front(getCount()); }
    ::mlir::OperandRange getWorkers() { return getOperands_().slice(getCount(), getCount()); }
    ::mlir::OperandRange getServers() { return getOperands_().take_back(getCount()); }
    /// The types of the errors of a value of this type; null if it has none: a scalar, or a value that is not a sum over the axis alone.
    static ::mlir::RankedTensorType workerType(::mlir::Type value, ::mlir::StringAttr axis, ::partita::par::MeshAttr mesh);
    static ::mlir::RankedTensorType serverType(::mlir::Type value, ::mlir::StringAttr axis, ::partita::par::MeshAttr mesh);
    /// A value's padding; none if it is not the end of a shard, so that the value cannot be compressed.
    static ::std::optional<::partita::par::OneBitPadding> paddingOf(::mlir::RankedTensorType value, ::partita::par::MeshAttr mesh);
    //===-- CollectiveInterface: an all-reduce of the values, then an all-to-all and an all-gather of blocks
    int64_t getTensorCount() { return getCount(); }
    int64_t getWireBytes() { return ::partita::bytesOf(getValues().getTypes()); }
    ::partita::LaterCollectives getLater();
    /// Bytes of one rank's block: a scale and a chunk's bits of each value (partita_rt/one_bit.h).
    int64_t getBlockBytes();
  }] # CollectiveOverAxis<"AllReduce">.declaration;
}

def Par_OneBitTermOp : Par_Op<"one_bit_term", [Pure]> {
  let summary = "a rank's term of a running mean that it updates by its term of a sum: partial -> partial";
  let description = [{
    Of ranks with terms g whose sum is G, and the same mean m: what adds up to beta m + (1 - beta) scale G, namely m / N + (1 - beta) (scale g - m / N) for N
    ranks. In exact steps (par.one_bit_all_reduce) it is g. What 1-bit Adam sums: of gradients first, then of momenta, which compress better (arXiv
    2102.02888, section 3). Without `scale`, it is 1.

        %x = par.one_bit_term %g, %m at %t : tensor<f32> times %typical : tensor<f32> over "dp" beta 0.9 exact until 10
           : tensor<5xf32, #par.place<[5], partial [dp]>>, tensor<5xf32> -> tensor<5xf32, #par.place<[5], partial [dp]>>
  }];
  let arguments = (ins AnyRankedTensor:$term, AnyRankedTensor:$mean, AnyRankedTensor:$t, Optional<0DTensorOf<[F32]>>:$scale, StrAttr:$axis, F64Attr:$beta,
                       Par_ExactSteps:$exact);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $term `,` $mean `at` $t `:` type($t) (`times` $scale^ `:` type($scale))? `over` $axis `beta` $beta `exact` custom<ExactSteps>($exact) attr-dict `:` type($term)
    `,` type($mean) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Par_OneBitMeanOp : Par_Op<"one_bit_mean", [Pure, AllTypesMatch<["sum", "mean", "result"]>]> {
  let summary = "the running mean after a sum of `one_bit_term`s";
  let description = [{
    Of the sum G of ranks' terms and the mean m: beta m + (1 - beta) scale G in exact steps (par.one_bit_all_reduce), when terms are gradients; in all others the sum,
    when they are terms of the mean. The mean stays in full on every rank, whose next term needs it, where an update takes a shard of it (ZeRO).

        %m1 = par.one_bit_mean %sum, %m at %t : tensor<f32> over "dp" beta 0.9 exact until 10 : tensor<5xf32>
  }];
  let arguments = (ins AnyRankedTensor:$sum, AnyRankedTensor:$mean, AnyRankedTensor:$t, Optional<0DTensorOf<[F32]>>:$scale, StrAttr:$axis, F64Attr:$beta,
                       Par_ExactSteps:$exact);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $sum `,` $mean `at` $t `:` type($t) (`times` $scale^ `:` type($scale))? `over` $axis `beta` $beta `exact` custom<ExactSteps>($exact) attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}

def Par_OneBitClipOp : Par_Op<"one_bit_clip",
    [Pure, AllTypesMatch<["factor", "typical", "of_sums", "of_gradients", "new_typical"]>]> {
  let summary = "the factor that clips gradients in exact steps (par.one_bit_all_reduce), and its root mean square in all others";
  let description = [{
    In exact steps both results are `factor`. In all others momenta are summed, nobody knows the norm that the sum of the gradients would have, and `factor`
    means nothing. The variance, by whose root momenta are divided, is of clipped gradients; so that momenta are too, a gradient is multiplied
    by `typical`, which has followed the factors of the exact steps as the variance has followed the gradients: the root of their mean square, whose mean keeps
    `beta` of itself (partita_rt/clip_factors.h). It is `of_gradients` where gradients are summed in all steps; where momenta are summed, it is part of
    their terms (par.one_bit_term), and `of_sums` is 1. `typical` is a state, 1 at first.

        %of_sums, %of_gradients, %next = par.one_bit_clip %factor, %typical at %t : tensor<f32> beta 0.999 exact until 10 : tensor<f32>
  }];
  let arguments = (ins 0DTensorOf<[F32]>:$factor, 0DTensorOf<[F32]>:$typical, AnyRankedTensor:$t, F64Attr:$beta, Par_ExactSteps:$exact);
  let results = (outs 0DTensorOf<[F32]>:$of_sums, 0DTensorOf<[F32]>:$of_gradients, 0DTensorOf<[F32]>:$new_typical);
  let assemblyFormat = [{
    $factor `,` $typical `at` $t `:` type($t) `beta` $beta `exact` custom<ExactSteps>($exact) attr-dict `:` type($factor)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The name of the state.
    static constexpr ::llvm::StringLiteral kState = "clip_factor";
  }];
}

#endif // PARTITA_PAR_ONE_BIT
