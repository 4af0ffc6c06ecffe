//===- Norms.td - norms of gradients, and scalars computed from them ------------------------------===//
//
// Clipping, and the ratios of LAMB and 1-bit LAMB. Optimizers are in Optimizers.td.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_TRAIN_NORMS
#define PARTITA_TRAIN_NORMS

include "dialects/Train/TrainBase.td"

/// Computed over full tensors, however they are split: each element counts once. `expand-norms` replaces such ops with sums over ranks.
def Train_OfFullTensors : NativeOpTrait<"OfFullTensors"> { let cppNamespace = "::partita::train"; }

def Train_GlobalNormOp : Train_Op<"global_norm", [Pure, Train_OfFullTensors, DeclareOpInterfaceMethods<PlacedInterface>]> {
  let summary = "the Euclidean norm of all tensors as one vector, each element counted once";
  let description = [{
    Computed over the full tensors, whatever their placement: a value that every rank has counts once, and shards are summed.
    Created by `optimize`, given shards by `zero-shard-states`; replaced with `square_sum`, sums over the axes that split
    something, and `norm` by `expand-norms`, once all splits are known. In a program of pipeline stages it is everywhere, whatever
    positions have its values. `parameters` are those whose gradients `values` are,
    so that a run can name the first one whose gradient is not finite.

        %norm = train.global_norm %dw, %db of [@w, @b] : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<f32>
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$values, OptionalAttr<FlatSymbolRefArrayAttr>:$parameters);
  let results = (outs 0DTensorOf<[AnyFloat]>:$norm);
  let assemblyFormat = "$values (`of` $parameters^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_SquareSumOp : Train_Op<"square_sum", [Pure, UpdateWork, DeclareOpInterfaceMethods<PlacedInterface, ["cutTo"]>]> {
  let summary = "the sum of squares of each tensor's elements on this rank";
  let description = [{
    All operands are split over the same axes, over which the sums are partial. Computed in double precision, in one
    fixed order. Created by `expand-norms`; becomes a kernel call.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$values);
  let results = (outs 1DTensorOf<[AnyFloat]>:$sum);
  let assemblyFormat = "$values attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_NormOp : Train_Op<"norm", [Pure, UpdateWork]> {
  let summary = "the square root of the sum of sums of squares";
  let description = [{
    `parameters` has one per sum, in order. Created by `expand-norms`; becomes a kernel call, and a second one that reports the
    first parameter whose sum is not finite.
  }];
  let arguments = (ins Variadic<1DTensorOf<[AnyFloat]>>:$squares, OptionalAttr<FlatSymbolRefArrayAttr>:$parameters);
  let results = (outs 0DTensorOf<[AnyFloat]>:$norm);
  let assemblyFormat = "$squares (`of` $parameters^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

/// Not pure: a stage that trains nothing reports the norm too, and takes part in the sum that it comes from.
def Train_ClipOp : Train_Op<"clip", [MemoryEffects<[MemWrite]>, UpdateWork]> {
  let summary = "the factor that makes the norm of gradients at most max_norm";
  let description = [{
    1 / max(1, (norm + 1e-6) / max_norm), DeepSpeed's and PyTorch's formula; 1 if max_norm is 0; NaN if the norm is NaN or
    infinite, since no multiple of it is finite. Created by `optimize`; becomes a kernel call, which reports the norm too.
  }];
  let arguments = (ins 0DTensorOf<[AnyFloat]>:$norm, F64Attr:$max_norm);
  let results = (outs 0DTensorOf<[AnyFloat]>:$scale);
  let assemblyFormat = "$norm attr-dict `:` functional-type(operands, results)";
}

def Train_TrustRatioOp : Train_Op<"trust_ratio", [Pure, Train_OfFullTensors]> {
  let summary = "LAMB's trust ratio: the norm of a full parameter over that of its full direction, within [least, most]";
  let description = [{
    Its operands are those of its `train.lamb` except rate and ratio: value, gradient, m, v, t and optionally scale; `hyper`
    has the same hyperparameters. 1 if one of the norms is 0. Like `global_norm`, it counts each element once, however it is
    split. Created by `optimize`; replaced with `direction_squares`, sums over the axes that split the
    value and `ratio` by `expand-norms`.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$values, DictionaryAttr:$hyper, F64Attr:$least, F64Attr:$most);
  let results = (outs 0DTensorOf<[AnyFloat]>:$ratio);
  let assemblyFormat = "$values attr-dict `:` functional-type(operands, results)";
}

def Train_FrozenTrustRatioOp : Train_Op<"frozen_trust_ratio", [Pure, Train_OfFullTensors, AttrSizedOperandSegments]> {
  let summary = "1-bit LAMB's ratio, and what it keeps of a parameter: LAMB's ratio in the warm-up, then their running mean times a factor";
  let description = [{
    Its operands are those of its `train.onebit_lamb` except rate and ratio, as of `trust_ratio`, then two states, scalars. In the warm-up (t <= `freeze` of
    `hyper`) the ratio is LAMB's, and `coefficient` becomes coeff_beta coefficient + (1 - coeff_beta) ratio. Afterwards the ratio is coefficient times `factor`: the
    largest ratio of an element's frozen denominator to that of the fresh variance, for the share that the direction without decay has in the
    norm of the direction, and 1 for the rest; within [factor_min, factor_max], and within `factor_threshold` of what it was
    (partita_rt/frozen_ratio.h). If `apply` is 0, the states stay. DeepSpeed leaves ratios of exactly 1 out of the mean; here a ratio is left out
    where a norm is 0.

    Norms and the largest ratio are of full tensors, however these are split. Created by `optimize`; replaced with `direction_squares`, sums and maxima over
    the axes that split the value, and `frozen_ratio` by `expand-norms`.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$values, 0DTensorOf<[AnyFloat]>:$coefficient, 0DTensorOf<[AnyFloat]>:$factor,
                       Optional<0DTensorOf<[AnyFloat]>>:$apply, DictionaryAttr:$hyper, F64Attr:$least, F64Attr:$most, F64Attr:$coeff_beta,
                       F64Attr:$factor_min, F64Attr:$factor_max, F64Attr:$factor_threshold);
  let results = (outs 0DTensorOf<[AnyFloat]>:$ratio, 0DTensorOf<[AnyFloat]>:$new_coefficient, 0DTensorOf<[AnyFloat]>:$new_factor);
  let assemblyFormat = "$values `with` $coefficient `,` $factor (`if` $apply^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The names of the states.
    static constexpr ::llvm::StringLiteral kCoefficient = "coefficient", kFactor = "factor";
    /// The optimizer whose ratio it is.
    static constexpr ::llvm::StringLiteral kOptimizer = "onebit_lamb";
    /// The place of `t` in `values`: behind the value, its gradient and the states.
    static unsigned getStepNumberIndex();
    ::mlir::Value getStepNumber() { return getValues()[getStepNumberIndex()]; }
    /// The last step of the warm-up, one of `hyper`.
    ::mlir::FloatAttr getFreeze();
  }];
}

def Train_DirectionSquaresOp : Train_Op<"direction_squares", [Pure, UpdateWork]> {
  let summary = "sums of squares on this rank of what a ratio is of: the elements of a parameter and of its direction";
  let description = [{
    Like `square_sum`, for those that the definition of `optimizer` names (`squared`); `largest` has the largest of each number of the definition's
    list of that name, of which ranks with other shards have a max. Operands: value, gradient, the states, t and optionally scale. Created by
    `expand-norms`; becomes a kernel call.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$values, StrAttr:$optimizer, DictionaryAttr:$hyper);
  let results = (outs 1DTensorOf<[AnyFloat]>:$sums, Optional<1DTensorOf<[AnyFloat]>>:$largest);
  let assemblyFormat = "$values `of` $optimizer attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_RatioOp : Train_Op<"ratio", [Pure, UpdateWork]> {
  let summary = "the root of one number over the root of another, within [least, most]; 1 if either is 0";
  let description = "Created by `expand-norms`; becomes a kernel call.";
  let arguments = (ins 1DTensorOf<[AnyFloat]>:$squares, F64Attr:$least, F64Attr:$most);
  let results = (outs 0DTensorOf<[AnyFloat]>:$ratio);
  let assemblyFormat = "$squares attr-dict `:` functional-type(operands, results)";
}

def Train_FrozenRatioOp : Train_Op<"frozen_ratio", [Pure, UpdateWork]> {
  let summary = "1-bit LAMB's ratio, and the new values of its states, from sums of squares and the largest ratio of denominators";
  let description = [{
    `squares` are those of the value, of its direction, and of the direction without decay. Created by `expand-norms` (train.frozen_trust_ratio); becomes a kernel call.
  }];
  let arguments = (ins 1DTensorOf<[AnyFloat]>:$squares, 1DTensorOf<[AnyFloat]>:$largest, 0DTensorOf<[AnyFloat]>:$t, 0DTensorOf<[AnyFloat]>:$coefficient,
                       0DTensorOf<[AnyFloat]>:$factor, Optional<0DTensorOf<[AnyFloat]>>:$apply, F64Attr:$freeze, F64Attr:$least, F64Attr:$most,
                       F64Attr:$coeff_beta, F64Attr:$factor_min, F64Attr:$factor_max, F64Attr:$factor_threshold);
  let results = (outs 0DTensorOf<[AnyFloat]>:$ratio, 0DTensorOf<[AnyFloat]>:$new_coefficient, 0DTensorOf<[AnyFloat]>:$new_factor);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

#endif // PARTITA_TRAIN_NORMS
