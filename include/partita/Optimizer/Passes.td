//===- Passes.td - what is done with the gradients ------------------------------------------------------===//

#ifndef PARTITA_OPTIMIZER_PASSES
#define PARTITA_OPTIMIZER_PASSES

include "mlir/Pass/PassBase.td"

def OptimizePass : Pass<"optimize", "::mlir::ModuleOp"> {
  let summary = "replaces train.update with an optimizer's arithmetic and states";
  let description = [{
    AdamW (Loshchilov and Hutter, arXiv 1711.05101) or SGD. Weight decay acts on parameters with at least
    two dimensions: not on biases and scales of normalizations. @init, where there is one, writes the states'
    first values too.

    ```mlir
    train.update @w, %w by %dw
    // becomes
    train.state @w.m : tensor<4x6xf32> = 0.0 of @w "m"
    train.state @w.v : tensor<4x6xf32> = 0.0 of @w "v"
    ...
    %m = train.read @w.m
    %v = train.read @w.v
    %p, %m1, %v1 = train.adamw %w, %dw, %m, %v, %lr, %t {beta1 = 0.9, ...}
    train.write @w, %p
    train.write @w.m, %m1
    train.write @w.v, %v1
    ```
  }];
  let options = [
    Option<"kind", "kind", "std::string", "\"adamw\"", "adamw or sgd">,
    ListOption<"betas", "betas", "double", "decays of the two moments, in [0, 1); 0.9,0.999 when not given">,
    Option<"epsilon", "epsilon", "double", "1e-8", "added to the root of the second moment">,
    Option<"weightDecay", "weight-decay", "double", "0.0", "decoupled weight decay per unit of learning rate">,
  ];
  let dependentDialects = ["::partita::train::TrainDialect"];
}

#endif // PARTITA_OPTIMIZER_PASSES
