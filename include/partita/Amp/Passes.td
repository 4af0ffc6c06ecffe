//===- Passes.td - loss scaling -------------------------------------------------------------------------===//

#ifndef PARTITA_AMP_PASSES
#define PARTITA_AMP_PASSES

include "mlir/Pass/PassBase.td"

def ScaleLossPass : Pass<"scale-loss", "::mlir::ModuleOp"> {
  let summary = "gives the program a loss scale";
  let description = [{
    Makes the states of the scale, which @init writes, and marks `train.minimize`: its loss's cotangent is the scale, and
    `optimize` divides by it, skips steps with an overflow and updates it. Without a `scale` nothing happens.

    ```mlir
    train.minimize %loss
    // becomes, with scale=0
    train.state @loss_scale : tensor<f32> = 65536.0
    train.state @loss_scale.steps : tensor<i64> = 0.0
    ...
    train.minimize %loss {amp.scaled = {consecutive = false, dynamic = true, hysteresis = 2, minimum = 1.0, window = 1000}}
    ```
  }];
  let options = [
    Option<"scale", "scale", "std::string", "", "the scale; 0 for a dynamic one, empty for none">,
    Option<"power", "power", "int64_t", "16", "a dynamic scale begins as 2 to this power">,
    Option<"window", "window", "int64_t", "1000", "clean steps between two growths">,
    Option<"hysteresis", "hysteresis", "int64_t", "2", "overflows until the scale is halved">,
    Option<"consecutive", "consecutive", "bool", "false", "a clean step forgives the overflows before it">,
    Option<"minimum", "minimum", "double", "1.0", "an overflow at this scale ends the run">,
  ];
  let dependentDialects = ["::partita::train::TrainDialect", "::partita::amp::AmpDialect"];
}

#endif // PARTITA_AMP_PASSES
