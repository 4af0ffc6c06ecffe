//===- Passes.td - from a model to what is trained -------------------------------------------------===//

#ifndef PARTITA_OBJECTIVE_PASSES
#define PARTITA_OBJECTIVE_PASSES

include "mlir/Pass/PassBase.td"

def AssignFillPass : Pass<"assign-fill", "::mlir::ModuleOp"> {
  let summary = "says how each parameter is filled when no file gives its value";
  let description = [{
    By use, not by name: the scale of a normalization is one, other vectors zero, tables and matrices
    normal with deviation `std` (GPT-2's initialization).

    ```mlir
    train.parameter @w : tensor<4x8xf32>
    // becomes
    train.parameter @w : tensor<4x8xf32> fill(<0.0, normal 0.02>)
    ```
  }];
  let options = [Option<"deviation", "std", "double", "0.02", "deviation of tables and matrices">];
  let dependentDialects = ["::partita::train::TrainDialect"];
}

def ObjectivePass : Pass<"objective", "::mlir::ModuleOp"> {
  let summary = "makes @train_step and @eval_step of @forward: next-token cross-entropy";
  let description = [{
    The mean over all labels that are not `ignore-index`, of all micro-batches and ranks: the count is
    known before the first backward pass, and each micro-batch's sum is divided by it.

    ```mlir
    func.func @forward(%ids: tensor<8x16xi64>) -> tensor<8x16x256xf32>
    // becomes, with accumulate=2
    func.func @train_step(%ids: tensor<2x8x16xi64>, %labels: tensor<2x8x16xi64>) -> (tensor<f32>, tensor<f32>) {
      %count = train.token_count %labels ignore -100 : (tensor<2x8x16xi64>) -> tensor<f32>
      %share = tx.reciprocal %count
      %loss = train.accumulate (%i = %ids, %l = %labels) : ... {
        ...                                  // the model
        %tokens, %lse = tx.cross_entropy %logits, %l ignore -100
        %sum = tx.reduce_sum %tokens [0, 1]
        %part = tx.mul %sum, %share
        train.yield %part
      }
      train.minimize %loss
      return %loss, %count
    }
    ```
  }];
  let options = [
    Option<"kind", "kind", "std::string", "\"auto\"", "auto: as above; none: inference alone, @forward stays the only program">,
    Option<"accumulate", "accumulate", "int64_t", "1", "micro-batches per step">,
    Option<"ignoreIndex", "ignore-index", "int64_t", "-100", "the label that does not count">,
    ListOption<"freeze", "freeze", "std::string", "parameters that are not trained: glob patterns over their names">,
  ];
  let dependentDialects = ["::partita::train::TrainDialect", "::partita::tx::TxDialect"];
}

#endif // PARTITA_OBJECTIVE_PASSES
