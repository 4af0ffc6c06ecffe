//===- Amp.td - loss scaling, and numbers of 8 bits -----------------------------------------------------===//
//
// The loss is multiplied by a scale so that small gradients do not vanish in 16 bits. Values computed from
// gradients are divided by it again, a step with an infinite or NaN gradient changes nothing, and overflows
// determine the next scale. README.md in this folder gives the reasons.
//
//===------------------------------------------------------------------------------------------------------===//

#ifndef PARTITA_AMP
#define PARTITA_AMP

include "mlir/IR/CommonTypeConstraints.td"
include "dialects/Interfaces/Interfaces.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Amp_Dialect : Dialect {
  let name = "amp";
  let cppNamespace = "::partita::amp";
  let summary = "loss scaling: unscaling, skipped steps, the next scale";
  let extraClassDeclaration = [{
    /// The scale's states: its value, the number of its updates, the number of the last update with an overflow,
    /// the overflows left until it is halved, and the number of skipped steps.
    static constexpr ::llvm::StringLiteral kScale = "loss_scale", kSteps = "loss_scale.steps",
        kLastOverflow = "loss_scale.last_overflow", kHysteresis = "loss_scale.hysteresis",
        kSkipped = "loss_scale.skipped";
    /// On train.minimize, by `scale-loss`, and on the module, by `differentiate`: the loss's cotangent is the
    /// scale. A dictionary of the attributes of amp.update_scale.
    static constexpr ::llvm::StringLiteral kScaled = "amp.scaled";
    /// The state of `--precision fp8`: what each quantized tensor's max was in the last steps, [steps, tensors].
    static constexpr ::llvm::StringLiteral kMaxima = "fp8.maxima";
    /// On the module, by `quantize-linears`: how many numbers tx.through_fp8 has, the first ones in e4m3, the others in e5m2, and the scales
    /// of the first step, a dictionary of the attributes of `scale-fp8`'s state.
    static constexpr ::llvm::StringLiteral kFp8 = "amp.fp8";
    /// On an optimizer's op, by `optimize`: the new value is rounded stochastically; the parameter's number, an i64, is
    /// the random key.
    static constexpr ::llvm::StringLiteral kStochastic = "amp.stochastic";
  }];
}

class Amp_Op<string mnemonic, list<Trait> traits = []>
    : Op<Amp_Dialect, mnemonic, !listconcat(traits, [UpdateWork])>;
def Amp_Float : 0DTensorOf<[F32]>;
def Amp_Count : 0DTensorOf<[I64]>;

def Amp_UnscaleOp : Amp_Op<"unscale", [Pure, AllTypesMatch<["value", "scale", "result"]>]> {
  let summary = "divides by the loss scale a value computed from scaled gradients, or one that multiplies them";
  let description = [{
    The scale is that of *their* backward pass, with which this step began. Created by `optimize`; becomes a kernel call,
    which reports a norm.

        %norm = amp.unscale %0 by %scale : tensor<f32>
  }];
  let arguments = (ins Amp_Float:$value, Amp_Float:$scale);
  let results = (outs Amp_Float:$result);
  let assemblyFormat = "$value `by` $scale attr-dict `:` type($result)";
}

def Amp_AllFiniteOp : Amp_Op<"all_finite", [Pure, AllTypesMatch<["norm", "finite"]>]> {
  let summary = "1 if the norm of all gradients is finite, else 0: one infinite or NaN element makes it infinite or NaN";
  let description = [{
    The squares are doubles, which are finite if the gradients are; the norm is already that of all ranks. Created
    by `optimize`; becomes a kernel call.
  }];
  let arguments = (ins Amp_Float:$norm);
  let results = (outs Amp_Float:$finite);
  let assemblyFormat = "$norm attr-dict `:` type($finite)";
}

def Amp_UpdateScaleOp : Amp_Op<"update_scale", [Pure]> {
  let summary = "the loss scale and its states after a step";
  let description = [{
    DeepSpeed's state machine (runtime: loss_scaler.h): each overflow from the `hysteresis`-th on halves a dynamic scale, `window` steps in
    a row without overflow double it, and an overflow at `minimum` ends the run. The first five results are the new values of the first five
    operands. Created by `optimize`; becomes a kernel call.
  }];
  let arguments = (ins Amp_Float:$scale, Amp_Count:$steps, Amp_Count:$last_overflow, Amp_Count:$hysteresis_left,
                       Amp_Count:$skipped, Amp_Float:$finite, BoolAttr:$dynamic, I64Attr:$window, I64Attr:$hysteresis,
                       BoolAttr:$consecutive, F64Attr:$minimum);
  let results = (outs Amp_Float:$new_scale, Amp_Count:$new_steps, Amp_Count:$new_last_overflow,
                      Amp_Count:$new_hysteresis_left, Amp_Count:$new_skipped);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

//===------------------------------------------------------------------------------------------------------===//
// FP8
//===------------------------------------------------------------------------------------------------------===//

def Amp_Vector : 1DTensorOf<[F32]>;
def Amp_Scales : 2DTensorOf<[F32]>;

def Amp_NoMaximaOp : Op<Amp_Dialect, "no_maxima", [Pure]> {
  let summary = "zeros, the maxima before anything is quantized";
  let description = "One per number of amp.quantize. Created by `scale-fp8`; becomes a kernel call.";
  let results = (outs Amp_Vector:$maxima);
  let assemblyFormat = "attr-dict `:` type($maxima)";
}

def Amp_QuantizeOp : Op<Amp_Dialect, "quantize", [Pure, AttrSizedResultSegments]> {
  let summary = "x / scales[number] in 8 bits, or its transpose, or both, and the sums of x's rows; raises maxima[number] to the max of |x|";
  let description = [{
    Rounds to nearest even; what is beyond the format's max becomes its max, infinities too; NaN stays NaN. A result in x's
    own type is the stored number times its scale, which is exact since scales are powers of two. `scales` has a row for each number, of
    copies: cuBLASLt wants the scale of an operand at an address of 16 bytes. The max is over the finite elements
    of this rank's shard. `columns`, which only some targets have, is the transpose: x's last dimension comes first. `sums`, which
    only the kernel of `columns` makes, are over all dimensions of x but the last. Created by `scale-fp8`, which makes `rows`; `transpose-fp8` adds
    `columns`, and `fuse-quantize-sums` `sums`; becomes a kernel call, which updates the maxima in place.

        %q, %m1 = amp.quantize %x by %scales[3] in f8E4M3FN noting %m0
            : tensor<4x8xbf16>, tensor<6x4xf32> -> rows tensor<4x8xf8E4M3FN> maxima tensor<6xf32>
  }];
  let arguments = (ins RankedTensorOf<[AnyFloat]>:$x, Amp_Scales:$scales, Optional<Amp_Vector>:$maxima, I64Attr:$number,
                       TypeAttrOf<AnyTypeOf<[F8E4M3FN, F8E5M2]>>:$stored);
  let results = (outs Optional<RankedTensorOf<[AnyFloat]>>:$rows, Optional<RankedTensorOf<[AnyFloat]>>:$columns,
                      Optional<Amp_Vector>:$raised, Optional<1DTensorOf<[AnyFloat]>>:$sums);
  let assemblyFormat = [{
    $x `by` $scales `[` $number `]` `in` $stored (`noting` $maxima^ `:` type($maxima))? attr-dict `:` type($x) `,` type($scales)
    `->` (`rows` type($rows)^)? (`columns` type($columns)^)? (`maxima` type($raised)^)? (`sums` type($sums)^)?
  }];
  let extraClassDeclaration = [{
    /// Replaces the op by one with results of these types; null: not made.
    QuantizeOp withResults(::mlir::Type rows, ::mlir::Type columns, ::mlir::Type sums);
  }];
  let hasVerifier = 1;
}

#endif // PARTITA_AMP
