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
    Option<"type", "type", "std::string", "\"float32\"", "float32 (no change), bfloat16 or float16">,
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
