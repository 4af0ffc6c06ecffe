//===- Passes.td - how parameters get their first values --------------------------------------------===//

#ifndef PARTITA_INIT_PASSES
#define PARTITA_INIT_PASSES

include "mlir/Pass/PassBase.td"

def AssignFillPass : Pass<"assign-fill", "::mlir::ModuleOp"> {
  let summary = "decides how each parameter is filled when no file gives its value";
  let description = [{
    Phase: objective.

    The use of a parameter decides, not its name, as in most Transformers: scales of norms, also per head, are
    one; biases and other vectors are zero; matrices, convolution kernels, token and position tables, and single
    rows that are not biases are normal with deviation `std`. With `residual-scale`, as in GPT-2 and Megatron,
    the deviation of matrices whose matmuls are added to a residual stream is divided by the square root of the
    number of these matmuls (GPT-2: two per layer). The structure says which these are, but not whether the
    model is initialized that way (LLaMA has the same structure and is not). T5's deviations by width are that
    model's own: take its values from a file.

    ```mlir
    train.parameter @bias : tensor<4x8xf32>         // the right operand of a matmul, whatever its name
    train.parameter @table : tensor<8xf32>          // the scale of a norm
    train.parameter @weight : tensor<8xf32>         // its bias
    // becomes
    train.parameter @bias : tensor<4x8xf32> fill(<0.0, normal 0.02>)
    train.parameter @table : tensor<8xf32> fill(<1.0>)
    train.parameter @weight : tensor<8xf32> fill(<0.0>)
    ```
  }];
  let options = [
    Option<"deviation", "std", "double", "0.02", "deviation of tables and matrices">,
    Option<"residualScale", "residual-scale", "bool", "false",
           "smaller deviations for matrices whose matmuls are added to a residual stream">,
  ];
  let statistics = [Statistic<"filled", "filled", "parameters that got a fill">];
  let dependentDialects = ["::partita::train::TrainDialect"];
}

def MakeInitPass : Pass<"make-init", "::mlir::ModuleOp"> {
  let summary = "makes @init, which gives every parameter its initial value";
  let description = [{
    Phase: objective.

    @init is a function like the others: partitioning places the values that it writes, `optimize` adds its
    states, and a run calls it once, unless it resumes. Parameters that @init writes already are left alone; a
    module without parameters gets no @init.

    ```mlir
    train.parameter @w : tensor<4x8xf32> fill(<0.0, normal 0.02>)
    // becomes
    train.parameter @w : tensor<4x8xf32> fill(<0.0, normal 0.02>)
    func.func @init() attributes {train.entry_point = #train.entry_point<init>} {
      %0 = train.initial_value @w : tensor<4x8xf32>
      train.write @w, %0 : tensor<4x8xf32>
      return
    }
    ```
  }];
  let statistics = [Statistic<"initialized", "initialized", "parameters that @init writes">];
  let dependentDialects = ["::partita::train::TrainDialect", "::mlir::func::FuncDialect"];
}

#endif // PARTITA_INIT_PASSES
