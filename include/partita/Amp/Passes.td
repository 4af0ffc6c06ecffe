//===- Passes.td - loss scaling -------------------------------------------------------------------------===//

#ifndef PARTITA_AMP_PASSES
#define PARTITA_AMP_PASSES

include "mlir/Pass/PassBase.td"

def LowerPrecisionPass : Pass<"lower-precision", "::mlir::ModuleOp"> {
  let summary = "stores parameters and activations in 16 bits";
  let description = [{
    Phase: precision.

    Parameters and the values computed from them get the type where the op's precision class allows it (PrecisionInterface). Every op
    still computes in 32 bits between casts, except matmuls and attention, whose kernels accumulate in 32 bits; `elide-casts` makes the
    other kernels read and store 16 bits.

    After the last matmul, attention or embedding, 32-bit values are not rounded: a loss that the model computes stays in 32 bits.
    Inputs and outputs keep their types. Frozen vectors stay in 32 bits (rotary frequencies; their products with positions are not
    rounded), except those of norms.

    ```mlir
    %w = train.read @w : tensor<8x8xf32>
    %y = tx.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %z = tx.gelu %y : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %o = tx.matmul %z, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    // becomes, with type=bfloat16
    %w = train.read @w : tensor<8x8xbf16>
    %x16 = tx.cast %x : tensor<4x8xf32> -> tensor<4x8xbf16>
    %y = tx.matmul %x16, %w : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
    %y32 = tx.cast %y : tensor<4x8xbf16> -> tensor<4x8xf32>
    %z32 = tx.gelu %y32 : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %z = tx.cast %z32 : tensor<4x8xf32> -> tensor<4x8xbf16>
    %o = tx.matmul %z, %w : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
    ```
  }];
  let options = [
    Option<"type", "type", "std::string", "\"float32\"", "float32 (no change), bfloat16, float16 or fp8 (bfloat16, see quantize-linears)">,
  ];
  let statistics = [Statistic<"parameters", "parameters", "parameters stored in 16 bits">];
  let dependentDialects = ["::partita::train::TrainDialect", "::partita::tx::TxDialect"];
}

def ElideCastsPass : Pass<"elide-casts", "::mlir::ModuleOp"> {
  let summary = "makes ops read and store 16 bits instead of computing between casts";
  let description = [{
    Phase: precision.

    `down(op(up(x), up(y)))` is the op on x and y: a kernel on 16 bits widens what it reads, computes in 32 bits and rounds
    once. Ops whose results stay in 32 bits (losses) read 16 bits. No bit of any result changes.

    ```mlir
    %a = tx.cast %x : tensor<4x8xbf16> -> tensor<4x8xf32>
    %b = tx.cast %y : tensor<4x8xbf16> -> tensor<4x8xf32>
    %s = tx.add %a, %b : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %r = tx.cast %s : tensor<4x8xf32> -> tensor<4x8xbf16>
    // becomes
    %r = tx.add %x, %y : (tensor<4x8xbf16>, tensor<4x8xbf16>) -> tensor<4x8xbf16>
    ```
  }];
  let statistics = [Statistic<"elided", "elided", "ops that read and store 16 bits">];
  let dependentDialects = ["::partita::tx::TxDialect"];
}

def QuantizeLinearsPass : Pass<"quantize-linears", "::mlir::ModuleOp"> {
  let summary = "marks what the matmuls of linear layers read in 8 bits";
  let description = [{
    Phase: precision.

    In a function that trains, the matmuls of an activation and a parameter read both in e4m3, and in the backward pass the cotangent
    in e5m2. The last one, which no other matmul follows, stays in 16 bits (the logits), and so do matmuls with a size that is not a
    multiple of 16. Values are numbered in the order of the program, cotangents after all others. With a `type` other than fp8 the pass
    does nothing.

    ```mlir
    %y = tx.matmul %x, %w : (tensor<16x16xbf16>, tensor<16x16xbf16>) -> tensor<16x16xbf16>
    // becomes, with type=fp8
    %x8 = tx.through_fp8 %x {number = 0 : i64, stored = f8E4M3FN} : (tensor<16x16xbf16>) -> tensor<16x16xbf16>
    %w8 = tx.through_fp8 %w {number = 1 : i64, stored = f8E4M3FN} : (tensor<16x16xbf16>) -> tensor<16x16xbf16>
    %y8 = tx.matmul %x8, %w8 : (tensor<16x16xbf16>, tensor<16x16xbf16>) -> tensor<16x16xbf16>
    %y = tx.cotangent_through_fp8 %y8 {number = 2 : i64, stored = f8E5M2} : (tensor<16x16xbf16>) -> tensor<16x16xbf16>
    ```
  }];
  let options = [
    Option<"type", "type", "std::string", "\"float32\"", "the precision: only fp8 changes anything">,
  ];
  let statistics = [Statistic<"quantized", "quantized", "linear layers whose operands are marked">];
  let dependentDialects = ["::partita::tx::TxDialect", "::partita::amp::AmpDialect"];
}

def ScaleFp8Pass : Pass<"scale-fp8", "::mlir::ModuleOp"> {
  let summary = "gives the marked values scales, and matmuls 8-bit operands";
  let description = [{
    Phase: schedule.

    Delayed scaling: the state `fp8.maxima` has the max of each marked value in the last 16 steps (of the last micro-batch). Scales follow
    from it when the step begins. While values are quantized their maxima are noted, at the end reduced over all ranks at once, and put in
    the place of the oldest ones. What a loop over micro-batches does not change is quantized once, before the loop.

    A matmul whose sizes on this rank are not multiples of 16 reads the same numbers in its own type.

    ```mlir
    %x8 = tx.through_fp8 %x {number = 0 : i64, stored = f8E4M3FN} : (tensor<16x16xbf16>) -> tensor<16x16xbf16>
    %w8 = tx.through_fp8 %w {number = 1 : i64, stored = f8E4M3FN} : (tensor<16x16xbf16>) -> tensor<16x16xbf16>
    %y = tx.matmul %x8, %w8 : (tensor<16x16xbf16>, tensor<16x16xbf16>) -> tensor<16x16xbf16>
    // becomes
    %history = train.read @fp8.maxima : tensor<16x2xf32>
    %max = tx.reduce_max %history ...
    %vector = tx.fp8_scale %max, ...
    %column = tx.reshape %vector ...
    %scales = tx.broadcast %column ...
    %m0 = amp.no_maxima : tensor<2xf32>
    %q, %m1 = amp.quantize %x by %scales[0] in f8E4M3FN noting %m0 ...
    %r, %m2 = amp.quantize %w by %scales[1] in f8E4M3FN noting %m1 ...
    %y = tx.scaled_matmul %q, %r scaled by %scales[0, 1] : (tensor<16x16xf8E4M3FN>, tensor<16x16xf8E4M3FN>, tensor<2x4xf32>) -> tensor<16x16xbf16>
    ...
    train.write @fp8.maxima, %next
    ```
  }];
  let statistics = [Statistic<"matmuls", "matmuls", "matmuls with 8-bit operands">];
  let dependentDialects = ["::partita::tx::TxDialect", "::partita::amp::AmpDialect", "::partita::par::ParDialect",
                           "::partita::train::TrainDialect"];
}

def TransposeFp8Pass : Pass<"transpose-fp8", "::mlir::ModuleOp"> {
  let summary = "on a GPU, stores 8-bit operands so that matmuls read both along what they sum over";
  let description = [{
    Phase: fuse.

    An operand that is read by columns is quantized into its transpose, by the kernel that quantizes it and, if rows are read too, beside
    them. Only for the target `cuda` (`rt.target`), whose matrix instructions read 8-bit operands by rows.

    ```mlir
    %q = amp.quantize %x by %scales[0] in f8E4M3FN : tensor<32x16xbf16>, tensor<3x1xf32> -> rows tensor<32x16xf8E4M3FN>
    %r = amp.quantize %w by %scales[1] in f8E4M3FN : tensor<16x48xbf16>, tensor<3x1xf32> -> rows tensor<16x48xf8E4M3FN>
    %s = amp.quantize %dy by %scales[2] in f8E5M2 : tensor<32x48xbf16>, tensor<3x1xf32> -> rows tensor<32x48xf8E5M2>
    %y = tx.scaled_matmul %q, %r scaled by %scales[0, 1]
    %dx = tx.scaled_matmul_nt %s, %r scaled by %scales[2, 1]
    %dw = tx.scaled_matmul_tn %q, %s scaled by %scales[0, 2]
    // becomes
    %q, %qt = amp.quantize %x by %scales[0] in f8E4M3FN : ... -> rows tensor<32x16xf8E4M3FN> columns tensor<16x32xf8E4M3FN>
    %r, %rt = amp.quantize %w by %scales[1] in f8E4M3FN : ... -> rows tensor<16x48xf8E4M3FN> columns tensor<48x16xf8E4M3FN>
    %s, %st = amp.quantize %dy by %scales[2] in f8E5M2 : ... -> rows tensor<32x48xf8E5M2> columns tensor<48x32xf8E5M2>
    %y = tx.scaled_matmul_nt %q, %rt scaled by %scales[0, 1]
    %dx = tx.scaled_matmul_nt %s, %r scaled by %scales[2, 1]
    %dw = tx.scaled_matmul_columns %qt, %st scaled by %scales[0, 2]
    ```
  }];
  let statistics = [Statistic<"transposed", "transposed", "8-bit values that are also, or only, stored transposed">];
  let dependentDialects = ["::partita::tx::TxDialect", "::partita::amp::AmpDialect"];
}

def ScaleLossPass : Pass<"scale-loss", "::mlir::ModuleOp"> {
  let summary = "gives the program a loss scale";
  let description = [{
    Phase: differentiate.

    Creates the states of the scale, which @init writes, and marks `train.minimize`: the cotangent of the loss is the scale, and
    `optimize` divides by it, skips steps with an overflow and updates it. Without a `scale` the pass does nothing.

    ```mlir
    train.minimize %loss
    // becomes, with scale=0
    ...
    train.state @loss_scale.steps : tensor<i64> = 0.0
    train.state @loss_scale : tensor<f32> = 65536.0
    train.minimize %loss {amp.scaled = {consecutive = false, dynamic = true, hysteresis = 2, minimum = 1.0, window = 1000}}
    ```
  }];
  let options = [
    Option<"scale", "scale", "std::string", "", "the scale; 0 for a dynamic one, empty for none">,
    Option<"power", "power", "int64_t", "16", "a dynamic scale starts at 2 to this power">,
    Option<"window", "window", "int64_t", "1000", "steps without overflow before the scale grows">,
    Option<"hysteresis", "hysteresis", "int64_t", "2", "overflows before the scale is halved">,
    Option<"consecutive", "consecutive", "bool", "false", "a step without overflow resets the count of overflows">,
    Option<"minimum", "minimum", "double", "1.0", "an overflow at this scale ends the run">,
  ];
  let statistics = [Statistic<"scaled", "scaled", "losses whose gradients are scaled">];
  let dependentDialects = ["::partita::train::TrainDialect", "::partita::amp::AmpDialect"];
}

def TypeGradientsPass : Pass<"type-gradients", "::mlir::ModuleOp"> {
  let summary = "chooses the types in which gradients are reduced and updates read them";
  let description = [{
    Phase: states.

    Sums over micro-batches have 32 bits and are not rounded for an update, which takes gradients of any type. With a `reduce-type`, each
    rank casts its gradient before it is reduced, and the sums over ranks have that type.

    ```mlir
    %g = par.all_reduce %part over "dp" because "gradient" : tensor<4xbf16, #par.place<[4], partial [dp]>> -> tensor<4xbf16>
    %w1, %r = train.sgd %w, %g, %rate {decay = 0.0}
    // becomes, with reduce-type=float32
    %wide = tx.cast %part : tensor<4xbf16, #par.place<[4], partial [dp]>> -> tensor<4xf32, #par.place<[4], partial [dp]>>
    %g = par.all_reduce %wide over "dp" because "gradient" : tensor<4xf32, #par.place<[4], partial [dp]>> -> tensor<4xf32>
    %w1, %r = train.sgd %w, %g, %rate {decay = 0.0}
    ```
  }];
  let options = [
    Option<"reduceType", "reduce-type", "std::string", "\"auto\"",
           "the type in which gradients are reduced: auto (their own), float32, bfloat16 or float16">,
  ];
  let statistics = [Statistic<"changed", "changed", "gradients reduced or read in another type">];
  let dependentDialects = ["::partita::tx::TxDialect", "::partita::par::ParDialect"];
}

#endif // PARTITA_AMP_PASSES
